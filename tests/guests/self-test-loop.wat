;; Loops in its start function, without end.
(component
  (core module $m (func $run (loop $again (br $again))) (start $run))
  (core instance (instantiate $m)))
