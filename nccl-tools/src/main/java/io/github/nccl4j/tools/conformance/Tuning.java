package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.AlgorithmSelection;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.CollectiveConfig.Builder;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.tools.launch.CommandErrors;
import java.util.Set;

/** Configurations of a single collective: each sets other fields, and none may change the results of the operation. */
enum Tuning {
    FORCED_RING {
        @Override
        boolean suits(Operation operation) {
            return operation.hasNamedAlgorithms();
        }

        @Override
        void set(Builder builder, CudaEvent event) {
            builder.algorithm("ring");
        }
    },

    FORCED_TREE {
        @Override
        boolean suits(Operation operation) {
            return operation == Operation.ALL_REDUCE;
        }

        @Override
        void set(Builder builder, CudaEvent event) {
            builder.algorithm(AlgorithmSelection.TREE);
        }
    },

    /** An algorithm that operations without names lack, too. */
    PREFERRED {
        @Override
        void set(Builder builder, CudaEvent event) {
            builder.preferAlgorithm(
                    AlgorithmSelection.NVLS.or(AlgorithmSelection.TREE.and(AlgorithmSelection.of("tree_ll"))));
        }
    },

    CTAS {
        @Override
        void set(Builder builder, CudaEvent event) {
            builder.minCtas(1).maxCtas(2).nvlsCtas(2).cgaClusterSize(2).ctaPolicy(CtaPolicy.EFFICIENCY);
        }
    },

    FEWEST_CTAS {
        @Override
        void set(Builder builder, CudaEvent event) {
            builder.minCtas(2);
        }
    },

    TAG_AND_OPTIONS {
        @Override
        void set(Builder builder, CudaEvent event) {
            builder.profilerTag(Long.MAX_VALUE).vendorOption(1, 1, 1).vendorOption(1, 2, "text");
        }
    },

    EVENT {
        @Override
        boolean hasEvent() {
            return true;
        }

        @Override
        void set(Builder builder, CudaEvent event) {
            builder.launchCompletionEvent(event);
        }
    };

    private static final Set<Operation> TAKING = Set.of(
            Operation.ALL_REDUCE,
            Operation.REDUCE,
            Operation.REDUCE_SCATTER,
            Operation.BROADCAST,
            Operation.ALL_GATHER,
            Operation.ALL_TO_ALL,
            Operation.GATHER,
            Operation.SCATTER);

    /** The operations that take a configuration. */
    static boolean isTakenBy(Operation operation) {
        return TAKING.contains(operation);
    }

    /** True if NCCL can run an operation with the configuration. */
    boolean suits(Operation operation) {
        return true;
    }

    boolean hasEvent() {
        return false;
    }

    abstract void set(Builder builder, CudaEvent event);

    /** The configuration of a rank, whose event it is; null without an event. */
    CollectiveConfig make(CudaEvent event) {
        Builder builder = CollectiveConfig.builder();
        set(builder, event);
        return builder.build();
    }

    /** The reason why the library does not support the configuration, or null. */
    String problem(Member member) {
        NcclLibrary library = NcclLibrary.get();
        if (!library.provides("ncclAllReduceConfig")) {
            return "the library lacks ncclAllReduceConfig";
        }
        try (CudaEvent event = hasEvent() ? CudaEvent.create(member.device()) : null) {
            make(event).requireSupportedBy(library);
            return null;
        } catch (NcclLibraryException e) {
            return CommandErrors.reason(e);
        }
    }
}
