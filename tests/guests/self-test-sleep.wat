;; Sleeps for an hour through the clock, in its start function.
(component
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $sleep (canon lower (func $clock "subscribe-duration")))
  (core module $m
    (import "host" "block" (func $block (param i32)))
    (import "host" "sleep" (func $sleep (param i64) (result i32)))
    (func $run (call $block (call $sleep (i64.const 3600000000000))))
    (start $run))
  (core instance $host (export "block" (func $block)) (export "sleep" (func $sleep)))
  (core instance (instantiate $m (with "host" (instance $host)))))
