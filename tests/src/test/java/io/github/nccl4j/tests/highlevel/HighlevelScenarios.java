package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.NvlsHostMode;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.Engine;
import java.nio.file.Path;
import java.util.List;

/** What the tests do in a JVM of its own, which has a library of its own: {@code main(scenario, argument)}. */
final class HighlevelScenarios {
    private HighlevelScenarios() {}

    public static void main(String... args) {
        switch (args[0]) {
            case "describe" -> describe();
            case "load" -> load(Path.of(args[1]), Path.of(args[2]));
            case "load-host" -> {
                attempt(() -> System.out.println(NcclLibrary.load(Engine.HOST).flavor()));
                attempt(() -> System.out.println(NcclLibrary.load(Engine.HOST) == NcclLibrary.get()));
                attempt(() ->
                        System.out.println(NcclLibrary.load(NcclLibrary.get().path()) == NcclLibrary.get()));
                attempt(() -> NcclLibrary.load(Engine.NCCL));
            }
            case "fail" -> fail();
            case "create-alone" -> attempt(() -> Communicator.create(UniqueId.create(), 1, 2));
            case "require" -> {
                for (String function :
                        List.of("ncclGetVersion", "ncclCommGrow", "pncclCommGrow", "ncclAlltoAllv", "ncclX")) {
                    attempt(() -> NcclLibrary.get().require(function));
                }
            }
            case "config" -> config();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void attempt(Runnable action) {
        try {
            action.run();
            System.out.println("ok");
        } catch (NcclException e) {
            System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage());
        }
    }

    private static void describe() {
        NcclLibrary library = NcclLibrary.get();
        System.out.println(library);
        System.out.println("path " + library.path());
        System.out.println("version " + library.version());
        System.out.println("engine " + library.engine());
        System.out.println("flavor " + library.flavor());
        System.out.println("form " + library.alltoAllvForm());
        System.out.println("cuda " + library.cudaVersion().orElse("unknown"));
        System.out.println("cuda " + library.cudaVersion().orElse("unknown"));
        System.out.println("same " + (library == NcclLibrary.get()));
    }

    private static void load(Path first, Path second) {
        attempt(() -> NcclLibrary.load(Path.of("/nowhere/libnccl.so.2")));
        System.out.println("loaded " + NcclLibrary.isLoaded());
        attempt(() -> System.out.println(NcclLibrary.load(first)));
        System.out.println("loaded " + NcclLibrary.isLoaded());
        attempt(() -> NcclLibrary.load(second));
        attempt(() -> System.out.println(NcclLibrary.load(first) == NcclLibrary.get()));
        System.out.println(NcclLibrary.get());
    }

    private static void fail() {
        try {
            UniqueId.create();
            System.out.println("created");
        } catch (NcclResultException e) {
            System.out.println(e.getClass().getSimpleName());
            System.out.println(e.result() + ", " + e.operation() + ", " + e.rank() + ", '" + e.communicatorName()
                    + "', " + e.libraryPath() + ", " + e.libraryVersion() + ", " + e.lastError());
            System.out.println(e.getMessage());
        }
    }

    private static void config() {
        CommunicatorConfig old = CommunicatorConfig.builder()
                .blocking(true)
                .cgaClusterSize(4)
                .maxCtas(8)
                .netName("Socket")
                .splitShare(false)
                .build();
        List<CommunicatorConfig> newer = List.of(
                old,
                CommunicatorConfig.builder().trafficClass(1).build(),
                CommunicatorConfig.builder().commName("train").build(),
                CommunicatorConfig.builder().ctaPolicy(CtaPolicy.EFFICIENCY).build(),
                CommunicatorConfig.builder().ctaPolicy(CtaPolicy.ZERO).build(),
                CommunicatorConfig.builder().nvlinkCentricSched(true).build(),
                CommunicatorConfig.builder().numRmaCtx(2).build(),
                CommunicatorConfig.builder().numRmaCtx(0).build(),
                CommunicatorConfig.builder().maxP2pPeers(4).build(),
                CommunicatorConfig.builder().graphStreamOrdering(true).build(),
                CommunicatorConfig.builder().minCtas(2).build(),
                CommunicatorConfig.builder().numRmaSig(2).build(),
                CommunicatorConfig.builder().nvlsHostMode(NvlsHostMode.ENABLE).build());
        for (CommunicatorConfig config : newer) {
            attempt(() -> config.requireSupportedBy(NcclLibrary.get()));
        }
        CommunicatorConfig ignoring = CommunicatorConfig.builder()
                .maxCtas(2)
                .maxP2pPeers(4)
                .ignoreUnsupported()
                .build();
        attempt(() -> ignoring.requireSupportedBy(NcclLibrary.get()));
    }
}
