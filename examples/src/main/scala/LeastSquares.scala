// Least squares on all ranks, in Scala 3: each rank has samples of its own, and the gradients are averaged.
import io.github.nccl4j.highlevel.{Communicator, ReduceOp}
import io.github.nccl4j.library.NativeLibrary
import io.github.nccl4j.pytorch.TensorCollectives
import org.bytedeco.javacpp.PointerScope
import org.bytedeco.pytorch.Scalar
import org.bytedeco.pytorch.global.torch
import scala.util.Using

@main def leastSquares(): Unit =
  NativeLibrary.unpack(classOf[torch])
  Using.resources(Communicator.fromEnvironment(), PointerScope()) { (communicator, _) =>
    val collectives = TensorCollectives.of(communicator)
    val truth = torch.ones(4L, 1L)
    val weights = torch.zeros(4L, 1L)
    torch.manual_seed(1L + communicator.rank)
    val inputs = torch.randn(64L, 4L)
    val outputs = inputs.matmul(truth)
    for _ <- 1 to 100 do
      Using.resource(PointerScope()) { _ =>
        val errors = inputs.matmul(weights).sub(outputs)
        val gradient = inputs.t().matmul(errors).div(Scalar(64.0))
        collectives.allReduce(gradient, ReduceOp.AVG)
        weights.sub_(gradient.mul(Scalar(0.5)))
      }
    val error = weights.sub(truth).abs().max().item_double()
    require(error <= 1e-5, s"error $error")
    println(f"rank ${communicator.rank} of ${communicator.size}: error $error%.1e, bound 1e-05")
  }
