//! From a name to addresses.

use std::io;
use std::net::IpAddr;

use checkrein_contract::port::BoxFuture;

/// Finds the addresses of a name. All of them are checked before one is connected to.
pub trait Resolver: Send + Sync {
    /// Every address of this name.
    ///
    /// # Errors
    ///
    /// If it cannot be resolved: then the request is refused.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
