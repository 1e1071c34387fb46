;; Least squares on all ranks, in Clojure: each rank has samples of its own, and the gradients are averaged.
(import '(io.github.nccl4j.highlevel Communicator ReduceOp)
        '(io.github.nccl4j.library NativeLibrary)
        '(io.github.nccl4j.pytorch TensorCollectives)
        '(org.bytedeco.javacpp PointerScope)
        '(org.bytedeco.pytorch Scalar Tensor)
        '(org.bytedeco.pytorch.global torch))

(NativeLibrary/unpack torch)
(with-open [communicator (Communicator/fromEnvironment)
            _ (PointerScope. (make-array Class 0))]
  (let [collectives (TensorCollectives/of communicator)
        shape (fn [& sizes] (long-array sizes))
        ^Tensor truth (torch/ones (shape 4 1))
        ^Tensor weights (torch/zeros (shape 4 1))
        _ (torch/manual_seed (inc (.rank communicator)))
        ^Tensor inputs (torch/randn (shape 64 4))
        ^Tensor outputs (.matmul inputs truth)]
    (dotimes [_ 100]
      (with-open [_ (PointerScope. (make-array Class 0))]
        (let [errors (.sub (.matmul inputs weights) outputs)
              gradient (.div (.matmul (.t inputs) errors) (Scalar. 64.0))]
          (.allReduce collectives ^Tensor gradient ReduceOp/AVG)
          (.sub_ weights (.mul gradient (Scalar. 0.5))))))
    (let [error (.item_double (.max (.abs (.sub weights truth))))]
      (when-not (<= error 1e-5)
        (throw (IllegalStateException. (str "error " error))))
      (println (format "rank %d of %d: error %.1e, bound 1e-05" (.rank communicator) (.size communicator) error)))))
