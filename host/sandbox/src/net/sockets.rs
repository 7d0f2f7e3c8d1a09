//! `wasi:sockets`: it links, since language runtimes ask for it, and nothing of it opens. No
//! descriptor is made, and every attempt is recorded.

use checkrein_contract::record::Wall;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, IpAddressFamily, Network};
use wasmtime_wasi::p2::bindings::sockets::{ip_name_lookup, network, tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use crate::state::State;
use crate::text::{excerpt, one_line};

type Addresses = Resource<ip_name_lookup::ResolveAddressStream>;

/// Puts these in the place of wasmtime-wasi's.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    tcp_create_socket::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    udp_create_socket::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    ip_name_lookup::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl State {
    fn refuse_socket<T>(&self, what: &str) -> SocketResult<T> {
        let what =
            format!("{what}: no component opens sockets; the `http` import and `wasi:http` are the way out");
        self.recorder.deny(Wall::Socket, what, None);
        Err(ErrorCode::AccessDenied.into())
    }
}

fn family(family: IpAddressFamily) -> &'static str {
    match family {
        IpAddressFamily::Ipv4 => "IPv4",
        IpAddressFamily::Ipv6 => "IPv6",
    }
}

impl tcp_create_socket::Host for State {
    fn create_tcp_socket(&mut self, address: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.refuse_socket(&format!("a TCP socket ({})", family(address)))
    }
}

impl udp_create_socket::Host for State {
    async fn create_udp_socket(&mut self, address: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.refuse_socket(&format!("a UDP socket ({})", family(address)))
    }
}

impl ip_name_lookup::Host for State {
    fn resolve_addresses(&mut self, _: Resource<Network>, name: String) -> SocketResult<Addresses> {
        self.refuse_socket(&format!("the addresses of `{}`", one_line(&excerpt(&name))))
    }
}

/// The words of an error are wasmtime-wasi's.
impl network::Host for State {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        network::Host::convert_error_code(&mut self.sockets(), error)
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        network::Host::network_error_code(&mut self.sockets(), error)
    }
}

impl network::HostNetwork for State {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.sockets(), network)
    }
}

/// No stream of addresses is ever made, so a guest has none to ask; these go to wasmtime-wasi's.
impl ip_name_lookup::HostResolveAddressStream for State {
    fn resolve_next_address(&mut self, stream: Addresses) -> SocketResult<Option<IpAddress>> {
        ip_name_lookup::HostResolveAddressStream::resolve_next_address(&mut self.sockets(), stream)
    }

    fn subscribe(&mut self, stream: Addresses) -> wasmtime::Result<Resource<DynPollable>> {
        ip_name_lookup::HostResolveAddressStream::subscribe(&mut self.sockets(), stream)
    }

    fn drop(&mut self, stream: Addresses) -> wasmtime::Result<()> {
        ip_name_lookup::HostResolveAddressStream::drop(&mut self.sockets(), stream)
    }
}
