package io.github.nccl4j.tools;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStoreServer;
import java.net.InetAddress;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code nccl4j store}: runs a store for ranks that another launcher starts, until it gets SIGTERM or SIGINT. */
@Command(
        name = "store",
        mixinStandardHelpOptions = true,
        description = {
            "Runs the store at which ranks meet, outside the ranks, so that each rank may end, including rank 0.",
            "",
            "Set NCCL4J_STORE_ADDRESS to its host and port for all ranks, and NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE for "
                    + "the store and all ranks. The store serves any number of jobs until it gets SIGTERM.",
            ""
        })
final class StoreCommand implements Callable<Integer> {

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "" + RankInfo.DEFAULT_PORT,
            description = "The port at which the store listens; 0 chooses a free one. Default: ${DEFAULT-VALUE}.")
    private int port;

    @Option(
            names = "--bind",
            paramLabel = "ADDRESS",
            defaultValue = "127.0.0.1",
            description =
                    "The address of this host at which the store listens; 0.0.0.0 for all. Default: ${DEFAULT-VALUE}.")
    private InetAddress bind;

    @Override
    public Integer call() throws InterruptedException {
        TcpStoreServer server = TcpStoreServer.start(bind, port);
        Runtime.getRuntime().addShutdownHook(new Thread(server::close, "end-store"));
        System.out.println("listening at " + server.address());
        new CountDownLatch(1).await();
        return 0;
    }
}
