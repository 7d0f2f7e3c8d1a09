;; Polls a list of two events that never come, as one waits on sockets that never answer.
(component
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (export "subscribe-instant" (func (param "when" u64) (result (own $pollable))))))
  (core module $memory
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
  (core instance $room (instantiate $memory))
  (alias core export $room "memory" (core memory $mem))
  (alias core export $room "realloc" (core func $realloc))
  (core func $wait (canon lower (func $poll "poll") (memory $mem) (realloc $realloc)))
  (core func $never (canon lower (func $clock "subscribe-instant")))
  (core module $m
    (import "room" "memory" (memory 1))
    (import "host" "wait" (func $wait (param i32 i32 i32)))
    (import "host" "never" (func $never (param i64) (result i32)))
    (func $run
      (i32.store (i32.const 0) (call $never (i64.const -1)))
      (i32.store (i32.const 4) (call $never (i64.const -1)))
      (call $wait (i32.const 0) (i32.const 2) (i32.const 16)))
    (start $run))
  (core instance $host (export "wait" (func $wait)) (export "never" (func $never)))
  (core instance (instantiate $m (with "room" (instance $room)) (with "host" (instance $host)))))
