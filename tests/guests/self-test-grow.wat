;; Takes a page at a time until it is refused, then traps.
(component
  (core module $m
    (memory 1)
    (func $run
      (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
      unreachable)
    (start $run))
  (core instance (instantiate $m)))
