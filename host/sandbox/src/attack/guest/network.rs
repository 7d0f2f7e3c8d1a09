//! Guests that want to leave: through the `http` import, `wasi:http`, a raw socket, a name lookup;
//! and one that looks for secrets in its environment. What came of it, each says in its log.

#![cfg_attr(not(test), allow(dead_code, reason = "tests use more of it than the corpus"))]

use super::Guest;

/// Where host functions write their results; past the static data, before the heap.
const RESULT: u32 = 65_536;

/// Fetches through the `http` import. Logs the body at the level `info`, or at `error` why there
/// is none.
pub(crate) fn fetches(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Guest {
    let mut guest = Guest::default();
    guest.import_log();
    guest.import("checkrein:skill/http@0.1.0", HTTP, "fetch", &format!("(param {})", "i32 ".repeat(11)));
    let (method, url, body) = (guest.image.text(method), guest.image.text(url), guest.image.text(body));
    let mut words = Vec::new();
    for (name, value) in headers {
        words.extend(guest.image.text(name));
        words.extend(guest.image.text(value));
    }
    let list = guest.image.words(&words);
    let arguments = [method, url, [list, headers.len() as u32], body, [0, 0]].concat();
    let arguments: String = arguments.iter().map(|word| format!("(i32.const {word})")).collect();
    // A `result` of a variant that holds a `u64`: its payload begins at 8, and that of the error at 16.
    guest.execute = format!(
        "(call $fetch {arguments} (i32.const {RESULT}))
         (if (i32.load8_u (i32.const {RESULT}))
           (then (call $write (i32.const 3)
             (i32.load offset=16 (i32.const {RESULT})) (i32.load offset=20 (i32.const {RESULT}))))
           (else (call $write (i32.const 1)
             (i32.load offset=28 (i32.const {RESULT})) (i32.load offset=32 (i32.const {RESULT})))))
         {}",
        guest.execute
    );
    guest
}

/// The same in every part of the skill, for parts that have no network.
pub(crate) fn fetches_everywhere(url: &str) -> Guest {
    let mut guest = fetches("GET", url, &[], "");
    let plain = Guest::default();
    let fetch = guest.execute.trim_end_matches(plain.execute.as_str()).to_owned();
    guest.assess = format!("{fetch} {}", guest.assess);
    guest.verify = format!("{fetch} {}", guest.verify);
    guest.recover = format!("{fetch} {}", guest.recover);
    guest
}

/// GETs through `wasi:http`; logs `answered`, `other` for another status than 200, or `denied`.
pub(crate) fn gets_by_wasi_http(authority: &str, path: &str) -> Guest {
    let mut guest = Guest::default();
    guest.import_log();
    guest.imports.push_str(WASI_HTTP);
    guest.with.push_str("(with \"w\" (instance $wasi-http))");
    guest.core.insert_str(0, WASI_HTTP_CORE);
    let text = |guest: &mut Guest, text: &str| {
        guest.image.text(text).map(|word| format!("(i32.const {word})")).concat()
    };
    let (authority, path) = (text(&mut guest, authority), text(&mut guest, path));
    let (answered, other) = (text(&mut guest, "answered"), text(&mut guest, "other"));
    let (denied, failed) = (text(&mut guest, "denied"), text(&mut guest, "failed"));
    let at = |offset: u32| format!("(i32.load8_u offset={offset} (i32.const {RESULT}))");
    guest.core.push_str(&format!(
        "(func $get (result i32)
           (local $request i32) (local $future i32)
           (local.set $request (call $new-request (call $new-fields)))
           (drop (call $set-scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))
           (if (call $set-authority (local.get $request) (i32.const 1) {authority}) (then unreachable))
           (if (call $set-path (local.get $request) (i32.const 1) {path}) (then unreachable))
           (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const {RESULT}))
           (if {} (then unreachable))
           (local.set $future (i32.load offset=8 (i32.const {RESULT})))
           (call $block (call $subscribe (local.get $future)))
           (call $get-response (local.get $future) (i32.const {RESULT}))
           ;; option, result, result: each a byte and what it holds at 8.
           (if (i32.or (i32.eqz {}) {}) (then unreachable))
           (if {} (then
             (if (i32.eq {} (i32.const 15))
               (then (call $write (i32.const 3) {denied}))
               (else (call $write (i32.const 3) {failed})))
             (return (i32.const 0))))
           (if (i32.eq (call $status (i32.load offset=24 (i32.const {RESULT}))) (i32.const 200))
             (then (call $write (i32.const 1) {answered}))
             (else (call $write (i32.const 1) {other})))
           (i32.const 0))",
        at(0),
        at(0),
        at(8),
        at(16),
        at(24),
    ));
    guest.execute = format!("(drop (call $get)) {}", guest.execute);
    guest
}

/// Opens a TCP socket, and traps unless that is refused as `access-denied`.
pub(crate) fn opens_a_raw_tcp_socket() -> Guest {
    let imports = format!(
        "(import \"wasi:sockets/tcp@0.2.0\" (instance $tcp (export \"tcp-socket\" (type (sub resource)))))
         (alias export $tcp \"tcp-socket\" (type $tcp-socket))
         (import \"wasi:sockets/tcp-create-socket@0.2.0\" (instance $create-tcp
           (alias outer 1 $tcp-socket (type $t)) (export \"tcp-socket\" (type $socket (eq $t)))
           (type $f (enum \"ipv4\" \"ipv6\")) (export \"ip-address-family\" (type $family (eq $f)))
           {SOCKET_ERROR}
           (export \"create-tcp-socket\"
             (func (param \"address-family\" $family) (result (result (own $socket) (error $error)))))))
         (core func $low-attempt (canon lower (func $create-tcp \"create-tcp-socket\") (memory $mem)))
         (core instance $attempt (export \"f\" (func $low-attempt)))"
    );
    refused_access(
        imports,
        "(param i32 i32)",
        format!("(i32.const 0) (i32.const {RESULT})"),
        Guest::default(),
    )
}

/// Looks up a name, which sends it out, and traps unless that is refused as `access-denied`.
pub(crate) fn looks_up_a_name(name: &str) -> Guest {
    let mut guest = Guest::default();
    let imports = format!(
        "(import \"wasi:sockets/network@0.2.0\" (instance $network (export \"network\" (type (sub resource)))))
         (alias export $network \"network\" (type $network-type))
         (import \"wasi:sockets/instance-network@0.2.0\" (instance $instance
           (alias outer 1 $network-type (type $n)) (export \"network\" (type $net (eq $n)))
           (export \"instance-network\" (func (result (own $net))))))
         (import \"wasi:sockets/ip-name-lookup@0.2.0\" (instance $lookup
           (alias outer 1 $network-type (type $n)) (export \"network\" (type $net (eq $n)))
           (export \"resolve-address-stream\" (type $stream (sub resource)))
           {SOCKET_ERROR}
           (export \"resolve-addresses\" (func (param \"network\" (borrow $net)) (param \"name\" string)
             (result (result (own $stream) (error $error)))))))
         (core func $low-network (canon lower (func $instance \"instance-network\")))
         (core instance $whole-network (export \"f\" (func $low-network)))
         (core func $low-attempt (canon lower (func $lookup \"resolve-addresses\") (memory $mem)))
         (core instance $attempt (export \"f\" (func $low-attempt)))"
    );
    guest.with.push_str("(with \"network\" (instance $whole-network))");
    guest.core.insert_str(0, "(import \"network\" \"f\" (func $network (result i32)))");
    let [at, length] = guest.image.text(name);
    let arguments = format!("(call $network) (i32.const {at}) (i32.const {length}) (i32.const {RESULT})");
    refused_access(imports, "(param i32 i32 i32 i32)", arguments, guest)
}

fn refused_access(imports: String, core_type: &str, arguments: String, mut guest: Guest) -> Guest {
    guest.imports.push_str(&imports);
    guest.with.push_str("(with \"attempt\" (instance $attempt))");
    guest.core.insert_str(0, &format!("(import \"attempt\" \"f\" (func $attempt {core_type}))"));
    // An error, and the second of the codes.
    guest.execute = format!(
        "(call $attempt {arguments})
         (if (i32.ne (i32.load8_u (i32.const {RESULT})) (i32.const 1)) (then unreachable))
         (if (i32.ne (i32.load8_u offset=4 (i32.const {RESULT})) (i32.const 1)) (then unreachable))
         {}",
        guest.execute
    );
    guest
}

/// Reads its environment and arguments, and traps if there is anything.
pub(crate) fn reads_the_environment() -> Guest {
    let mut guest = Guest::default();
    guest.imports.push_str(
        "(import \"wasi:cli/environment@0.2.0\" (instance $environment
           (export \"get-environment\" (func (result (list (tuple string string)))))
           (export \"get-arguments\" (func (result (list string))))))
         (core func $low-environment
           (canon lower (func $environment \"get-environment\") (memory $mem) (realloc $mrealloc)))
         (core func $low-arguments
           (canon lower (func $environment \"get-arguments\") (memory $mem) (realloc $mrealloc)))
         (core instance $cli (export \"environment\" (func $low-environment)) (export \"arguments\" (func $low-arguments)))",
    );
    guest.with.push_str("(with \"cli\" (instance $cli))");
    guest.core.insert_str(
        0,
        "(import \"cli\" \"environment\" (func $environment (param i32)))
         (import \"cli\" \"arguments\" (func $arguments (param i32)))",
    );
    let nothing = |function: &str| {
        format!(
            "(call ${function} (i32.const {RESULT}))
             (if (i32.load offset=4 (i32.const {RESULT})) (then unreachable))"
        )
    };
    guest.execute = format!("{} {} {}", nothing("environment"), nothing("arguments"), guest.execute);
    guest
}

const HTTP: &str = r#"
    (type $h (list (tuple string string)))
    (type $q (record (field "method" string) (field "url" string) (field "headers" $h)
      (field "body" (list u8)) (field "timeout-ms" (option u32))))
    (export "request" (type $request (eq $q)))
    (type $s (record (field "url" string) (field "status" u16) (field "headers" $h) (field "body" (list u8))))
    (export "response" (type $response (eq $s)))
    (type $e (variant (case "denied" string) (case "timed-out") (case "too-large" u64)
      (case "invalid" string) (case "transport" string)))
    (export "error" (type $error (eq $e)))
    (export "fetch" (func (param "request" $request) (result (result $response (error $error)))))"#;

const SOCKET_ERROR: &str = r#"
    (type $e (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
      "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
      "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
      "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
      "permanent-resolver-failure"))
    (export "error-code" (type $error (eq $e)))"#;

const WASI_HTTP: &str = r#"
    (import "wasi:io/poll@0.2.0" (instance $poll
      (export "pollable" (type $pollable (sub resource)))
      (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:http/types@0.2.0" (instance $http-types
      (alias outer 1 $pollable (type $p)) (export "pollable" (type $pollable (eq $p)))
      (export "fields" (type $fields (sub resource)))
      (export "request-options" (type $options (sub resource)))
      (export "outgoing-request" (type $outgoing (sub resource)))
      (export "incoming-response" (type $incoming (sub resource)))
      (export "future-incoming-response" (type $future (sub resource)))
      (type $s (variant (case "HTTP") (case "HTTPS") (case "other" string)))
      (export "scheme" (type $scheme (eq $s)))
      (type $d (record (field "rcode" (option string)) (field "info-code" (option u16))))
      (export "DNS-error-payload" (type $dns (eq $d)))
      (type $t (record (field "alert-id" (option u8)) (field "alert-message" (option string))))
      (export "TLS-alert-received-payload" (type $tls (eq $t)))
      (type $z (record (field "field-name" (option string)) (field "field-size" (option u32))))
      (export "field-size-payload" (type $size (eq $z)))
      (type $e (variant (case "DNS-timeout") (case "DNS-error" $dns) (case "destination-not-found")
        (case "destination-unavailable") (case "destination-IP-prohibited") (case "destination-IP-unroutable")
        (case "connection-refused") (case "connection-terminated") (case "connection-timeout")
        (case "connection-read-timeout") (case "connection-write-timeout") (case "connection-limit-reached")
        (case "TLS-protocol-error") (case "TLS-certificate-error") (case "TLS-alert-received" $tls)
        (case "HTTP-request-denied") (case "HTTP-request-length-required")
        (case "HTTP-request-body-size" (option u64)) (case "HTTP-request-method-invalid")
        (case "HTTP-request-URI-invalid") (case "HTTP-request-URI-too-long")
        (case "HTTP-request-header-section-size" (option u32)) (case "HTTP-request-header-size" (option $size))
        (case "HTTP-request-trailer-section-size" (option u32)) (case "HTTP-request-trailer-size" $size)
        (case "HTTP-response-incomplete") (case "HTTP-response-header-section-size" (option u32))
        (case "HTTP-response-header-size" $size) (case "HTTP-response-body-size" (option u64))
        (case "HTTP-response-trailer-section-size" (option u32)) (case "HTTP-response-trailer-size" $size)
        (case "HTTP-response-transfer-coding" (option string))
        (case "HTTP-response-content-coding" (option string)) (case "HTTP-response-timeout")
        (case "HTTP-upgrade-failed") (case "HTTP-protocol-error") (case "loop-detected")
        (case "configuration-error") (case "internal-error" (option string))))
      (export "error-code" (type $error (eq $e)))
      (export "[constructor]fields" (func (result (own $fields))))
      (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $outgoing))))
      (export "[method]outgoing-request.set-scheme"
        (func (param "self" (borrow $outgoing)) (param "scheme" (option $scheme)) (result (result))))
      (export "[method]outgoing-request.set-authority"
        (func (param "self" (borrow $outgoing)) (param "authority" (option string)) (result (result))))
      (export "[method]outgoing-request.set-path-with-query"
        (func (param "self" (borrow $outgoing)) (param "path-with-query" (option string)) (result (result))))
      (export "[method]future-incoming-response.subscribe"
        (func (param "self" (borrow $future)) (result (own $pollable))))
      (export "[method]future-incoming-response.get" (func (param "self" (borrow $future))
        (result (option (result (result (own $incoming) (error $error)))))))
      (export "[method]incoming-response.status" (func (param "self" (borrow $incoming)) (result u16)))))
    (alias export $http-types "outgoing-request" (type $outgoing))
    (alias export $http-types "request-options" (type $options))
    (alias export $http-types "future-incoming-response" (type $future))
    (alias export $http-types "error-code" (type $http-error))
    (import "wasi:http/outgoing-handler@0.2.0" (instance $handler
      (alias outer 1 $outgoing (type $o)) (export "outgoing-request" (type $request (eq $o)))
      (alias outer 1 $options (type $n)) (export "request-options" (type $request-options (eq $n)))
      (alias outer 1 $future (type $f)) (export "future-incoming-response" (type $response (eq $f)))
      (alias outer 1 $http-error (type $e)) (export "error-code" (type $error (eq $e)))
      (export "handle" (func (param "request" (own $request)) (param "options" (option (own $request-options)))
        (result (result (own $response) (error $error)))))))
    (core func $w1 (canon lower (func $http-types "[constructor]fields")))
    (core func $w2 (canon lower (func $http-types "[constructor]outgoing-request")))
    (core func $w3 (canon lower (func $http-types "[method]outgoing-request.set-scheme") (memory $mem)))
    (core func $w4 (canon lower (func $http-types "[method]outgoing-request.set-authority") (memory $mem)))
    (core func $w5 (canon lower (func $http-types "[method]outgoing-request.set-path-with-query") (memory $mem)))
    (core func $w6 (canon lower (func $handler "handle") (memory $mem) (realloc $mrealloc)))
    (core func $w7 (canon lower (func $http-types "[method]future-incoming-response.subscribe")))
    (core func $w8 (canon lower (func $poll "[method]pollable.block")))
    (core func $w9 (canon lower (func $http-types "[method]future-incoming-response.get")
      (memory $mem) (realloc $mrealloc)))
    (core func $w10 (canon lower (func $http-types "[method]incoming-response.status")))
    (core instance $wasi-http
      (export "1" (func $w1)) (export "2" (func $w2)) (export "3" (func $w3)) (export "4" (func $w4))
      (export "5" (func $w5)) (export "6" (func $w6)) (export "7" (func $w7)) (export "8" (func $w8))
      (export "9" (func $w9)) (export "10" (func $w10)))"#;

const WASI_HTTP_CORE: &str = r#"
    (import "w" "1" (func $new-fields (result i32)))
    (import "w" "2" (func $new-request (param i32) (result i32)))
    (import "w" "3" (func $set-scheme (param i32 i32 i32 i32 i32) (result i32)))
    (import "w" "4" (func $set-authority (param i32 i32 i32 i32) (result i32)))
    (import "w" "5" (func $set-path (param i32 i32 i32 i32) (result i32)))
    (import "w" "6" (func $handle (param i32 i32 i32 i32)))
    (import "w" "7" (func $subscribe (param i32) (result i32)))
    (import "w" "8" (func $block (param i32)))
    (import "w" "9" (func $get-response (param i32 i32)))
    (import "w" "10" (func $status (param i32) (result i32)))"#;
