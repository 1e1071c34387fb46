package io.github.nccl4j.tools.conformance;

import static io.github.nccl4j.tools.conformance.Buffers.EQUAL;
import static io.github.nccl4j.tools.conformance.Buffers.EXCHANGED;
import static io.github.nccl4j.tools.conformance.Buffers.EXCHANGED_UNEVENLY;
import static io.github.nccl4j.tools.conformance.Buffers.GATHERED;
import static io.github.nccl4j.tools.conformance.Buffers.GATHERED_UNEVENLY;
import static io.github.nccl4j.tools.conformance.Buffers.SCATTERED;
import static io.github.nccl4j.tools.conformance.Buffers.SCATTERED_DENSELY;
import static io.github.nccl4j.tools.conformance.Buffers.SCATTERED_UNEVENLY;
import static io.github.nccl4j.tools.conformance.Form.ADDRESSES;
import static io.github.nccl4j.tools.conformance.Form.ADDRESSES_IN_PLACE;
import static io.github.nccl4j.tools.conformance.Form.IN_PLACE;
import static io.github.nccl4j.tools.conformance.Form.ONE_BUFFER;
import static io.github.nccl4j.tools.conformance.Form.OUT_OF_PLACE;

import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Group;
import java.util.List;

/**
 * The operations of a communicator: their {@link Buffers}, their calls, and their results.
 */
enum Operation {
    ALL_REDUCE(true, EQUAL, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER, ADDRESSES, ADDRESSES_IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().allReduce(t.send(), t.recv(), t.op(), t.stream(), t.config());
                return;
            }
            if (t.form() == ONE_BUFFER) {
                t.communicator().allReduce(t.recv(), t.op(), t.stream());
            } else if (t.form().byAddress()) {
                t.communicator()
                        .onAddresses()
                        .allReduce(t.sendAddress(), t.recvAddress(), t.count(), t.dataType(), t.op(), t.stream());
            } else {
                t.communicator().allReduce(t.send(), t.recv(), t.op(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.reduced(c.operator().reduction, 0, c.count(), 0, size > 2 ? size - 1 : Expectation.ANY);
        }
    },

    REDUCE(true, EQUAL, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER, ADDRESSES, ADDRESSES_IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().reduce(t.send(), t.recv(), t.op(), t.root(), t.stream(), t.config());
                return;
            }
            if (t.form() == ONE_BUFFER) {
                t.communicator().reduce(t.recv(), t.op(), t.root(), t.stream());
            } else if (t.form().byAddress()) {
                t.communicator()
                        .onAddresses()
                        .reduce(
                                t.sendAddress(),
                                t.recvAddress(),
                                t.count(),
                                t.dataType(),
                                t.op(),
                                t.root(),
                                t.stream());
            } else {
                t.communicator().reduce(t.send(), t.recv(), t.op(), t.root(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            if (rank == c.root()) {
                recv.reduced(c.operator().reduction, 0, c.count(), 0, rank);
            }
        }
    },

    REDUCE_SCATTER(true, SCATTERED, OUT_OF_PLACE, IN_PLACE, ADDRESSES, ADDRESSES_IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().reduceScatter(t.send(), t.recv(), t.op(), t.stream(), t.config());
                return;
            }
            if (t.form().byAddress()) {
                t.communicator()
                        .onAddresses()
                        .reduceScatter(t.sendAddress(), t.recvAddress(), t.count(), t.dataType(), t.op(), t.stream());
            } else {
                t.communicator().reduceScatter(t.send(), t.recv(), t.op(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.reduced(c.operator().reduction, rank * c.count(), c.count(), 0, rank);
        }
    },

    BROADCAST(false, EQUAL, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER, ADDRESSES, ADDRESSES_IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().broadcast(t.send(), t.recv(), t.root(), t.stream(), t.config());
                return;
            }
            if (t.form() == ONE_BUFFER) {
                t.communicator().broadcast(t.recv(), t.root(), t.stream());
            } else if (t.form().byAddress()) {
                t.communicator()
                        .onAddresses()
                        .broadcast(t.sendAddress(), t.recvAddress(), t.count(), t.dataType(), t.root(), t.stream());
            } else {
                t.communicator().broadcast(t.send(), t.recv(), t.root(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.copied(c.root(), 0, c.count(), 0);
        }
    },

    ALL_GATHER(false, GATHERED, OUT_OF_PLACE, IN_PLACE, ADDRESSES, ADDRESSES_IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().allGather(t.send(), t.recv(), t.stream(), t.config());
                return;
            }
            if (t.form().byAddress()) {
                t.communicator()
                        .onAddresses()
                        .allGather(t.sendAddress(), t.recvAddress(), t.count(), t.dataType(), t.stream());
            } else {
                t.communicator().allGather(t.send(), t.recv(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            for (int from = 0; from < size; from++) {
                recv.copied(from, 0, c.count(), from * c.count());
            }
        }
    },

    ALL_TO_ALL(false, EXCHANGED, OUT_OF_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().allToAll(t.send(), t.recv(), t.stream(), t.config());
                return;
            }
            t.communicator().allToAll(t.send(), t.recv(), t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            exchanged(recv, c, rank, size);
        }
    },

    /** With one buffer, ranks other than the root pass no receive buffer; the root is in place. */
    GATHER(false, GATHERED, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().gather(t.send(), t.recv(), t.root(), t.stream(), t.config());
                return;
            }
            if (t.form() == ONE_BUFFER && t.communicator().rank() != t.root()) {
                t.communicator().gather(t.send(), t.root(), t.stream());
            } else {
                t.communicator().gather(t.send(), t.recv(), t.root(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            for (int from = 0; rank == c.root() && from < size; from++) {
                recv.copied(from, 0, c.count(), from * c.count());
            }
        }
    },

    /** The reverse of GATHER. */
    SCATTER(false, SCATTERED, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.config() != null) {
                t.communicator().scatter(t.send(), t.recv(), t.root(), t.stream(), t.config());
                return;
            }
            if (t.form() == ONE_BUFFER && t.communicator().rank() != t.root()) {
                t.communicator().scatter(t.recv(), t.root(), t.stream());
            } else {
                t.communicator().scatter(t.send(), t.recv(), t.root(), t.stream());
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.copied(c.root(), rank * c.count(), c.count(), 0);
        }
    },

    ALL_GATHER_V(false, GATHERED_UNEVENLY, OUT_OF_PLACE, IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            Shares shares = Shares.spread(t.c(), t.communicator().size());
            t.communicator().allGatherv(t.send(), t.recv(), shares.counts(), shares.places(), t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            Shares.spread(c, size).forEach((from, count, place) -> recv.copied(from, 0, count, place));
        }
    },

    GATHER_V(false, GATHERED_UNEVENLY, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.form() == ONE_BUFFER && t.communicator().rank() != t.root()) {
                t.communicator().gatherv(t.send(), t.root(), t.stream());
                return;
            }
            Shares shares = Shares.spread(t.c(), t.communicator().size());
            t.communicator().gatherv(t.send(), t.recv(), shares.counts(), shares.places(), t.root(), t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            if (rank == c.root()) {
                Shares.spread(c, size).forEach((from, count, place) -> recv.copied(from, 0, count, place));
            }
        }
    },

    SCATTER_V(false, SCATTERED_UNEVENLY, OUT_OF_PLACE, IN_PLACE, ONE_BUFFER) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            if (t.form() == ONE_BUFFER && t.communicator().rank() != t.root()) {
                t.communicator().scatterv(t.recv(), t.root(), t.stream());
                return;
            }
            Shares shares = Shares.spread(t.c(), t.communicator().size());
            t.communicator().scatterv(t.send(), shares.counts(), shares.places(), t.recv(), t.root(), t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.copied(c.root(), Shares.spread(c, size).place(rank), Shares.count(c, rank), 0);
        }
    },

    REDUCE_SCATTER_V(true, SCATTERED_DENSELY, OUT_OF_PLACE, IN_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            Shares shares = Shares.dense(t.c(), t.communicator().size());
            t.communicator().reduceScatterv(t.send(), t.recv(), shares.counts(), t.op(), t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            int place = Shares.dense(c, size).place(rank);
            recv.reduced(c.operator().reduction, place, Shares.count(c, rank), 0, rank);
        }
    },

    /** Not in a group, because the ranks compare their counts first. */
    ALL_TO_ALL_V(false, EXCHANGED_UNEVENLY, OUT_OF_PLACE) {
        @Override
        boolean goesInGroups() {
            return false;
        }

        @Override
        <T extends Element> void call(DataTrial<T> t) {
            Shares sent = t.sent();
            Shares received = t.received();
            t.communicator()
                    .allToAllv(
                            t.send(),
                            sent.counts(),
                            sent.places(),
                            t.recv(),
                            received.counts(),
                            received.places(),
                            t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            exchangedUnevenly(recv, c, rank, size);
        }
    },

    ALL_TO_ALL_V_UNCHECKED(false, EXCHANGED_UNEVENLY, OUT_OF_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            Shares sent = t.sent();
            Shares received = t.received();
            t.communicator()
                    .allToAllvUnchecked(
                            t.send(),
                            sent.counts(),
                            sent.places(),
                            t.recv(),
                            received.counts(),
                            received.places(),
                            t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            exchangedUnevenly(recv, c, rank, size);
        }
    },

    ALL_TO_ALL_V_BY_PLAN(false, EXCHANGED_UNEVENLY, OUT_OF_PLACE) {
        @Override
        <T extends Element> AllToAllvPlan<T> prepare(DataTrial<T> t) {
            Shares sent = t.sent();
            Shares received = t.received();
            return t.communicator()
                    .planAllToAllv(
                            t.send(), sent.counts(), sent.places(), t.recv(), received.counts(), received.places());
        }

        @Override
        <T extends Element> void call(DataTrial<T> t) {
            t.communicator().allToAllv(t.plan(), t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            exchangedUnevenly(recv, c, rank, size);
        }
    },

    /** Each rank sends to the next. */
    SEND_RECV_RING(false, EQUAL, OUT_OF_PLACE) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            Communicator communicator = t.communicator();
            int size = communicator.size();
            int next = (communicator.rank() + 1) % size;
            int previous = (communicator.rank() + size - 1) % size;
            communicator.sendRecv(t.send(), next, t.recv(), previous, t.stream());
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.copied((rank + size - 1) % size, 0, c.count(), 0);
        }
    },

    /** Ranks 0 and 1, 2 and 3, ... exchange; the last of an odd number sends to itself. */
    SEND_RECV_PAIRS(false, EQUAL, OUT_OF_PLACE, ADDRESSES) {
        private int partner(int rank, int size) {
            return (rank ^ 1) < size ? rank ^ 1 : rank;
        }

        @Override
        <T extends Element> void call(DataTrial<T> t) {
            int partner = partner(t.communicator().rank(), t.communicator().size());
            Group.run(() -> {
                transfer(t, true, 0, t.count(), partner);
                transfer(t, false, 0, t.count(), partner);
            });
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            recv.copied(partner(rank, size), 0, c.count(), 0);
        }
    },

    /** Even ranks send to the next, which only receives: without a group. */
    SEND_OR_RECV(false, EQUAL, OUT_OF_PLACE, ADDRESSES) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            int rank = t.communicator().rank();
            if (rank % 2 == 1) {
                transfer(t, false, 0, t.count(), rank - 1);
            } else if (rank + 1 < t.communicator().size()) {
                transfer(t, true, 0, t.count(), rank + 1);
            }
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            if (rank % 2 == 1) {
                recv.copied(rank - 1, 0, c.count(), 0);
            }
        }
    },

    /** Each rank sends to all ranks, itself included; all sends precede all receives. */
    ALL_TO_ALL_BY_GROUP(false, EXCHANGED, OUT_OF_PLACE, ADDRESSES) {
        @Override
        <T extends Element> void call(DataTrial<T> t) {
            Group.run(() -> {
                for (int peer = 0; peer < t.communicator().size(); peer++) {
                    transfer(t, true, peer * t.count(), t.count(), peer);
                }
                for (int peer = 0; peer < t.communicator().size(); peer++) {
                    transfer(t, false, peer * t.count(), t.count(), peer);
                }
            });
        }

        @Override
        void expect(Expectation recv, Case c, int rank, int size) {
            exchanged(recv, c, rank, size);
        }
    };

    private final boolean reduces;
    private final Buffers buffers;
    private final List<Form> forms;

    Operation(boolean reduces, Buffers buffers, Form... forms) {
        this.reduces = reduces;
        this.buffers = buffers;
        this.forms = List.of(forms);
    }

    boolean reduces() {
        return reduces;
    }

    Buffers buffers() {
        return buffers;
    }

    List<Form> forms() {
        return forms;
    }

    /** True if NCCL has algorithms of the operation that can be selected. */
    boolean hasNamedAlgorithms() {
        return switch (this) {
            case ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER -> true;
            default -> false;
        };
    }

    /** The forms that take a configuration. */
    List<Form> formsAsConfigured() {
        return forms.stream()
                .filter(form -> form == OUT_OF_PLACE || form == IN_PLACE)
                .toList();
    }

    /** True if this rank's buffers share memory. Of a gather and a scatter, those of the root do. */
    boolean inPlace(Case c, int rank) {
        return switch (this) {
            case GATHER, SCATTER, GATHER_V, SCATTER_V -> c.form().inPlace && rank == c.root();
            default -> c.form().inPlace;
        };
    }

    boolean goesInGroups() {
        return true;
    }

    /** The preparation of all ranks before the call, if there is one; closed when the trial is over. */
    <T extends Element> AllToAllvPlan<T> prepare(DataTrial<T> trial) {
        return null;
    }

    abstract <T extends Element> void call(DataTrial<T> trial);

    abstract void expect(Expectation recv, Case c, int rank, int size);

    private static void exchanged(Expectation recv, Case c, int rank, int size) {
        for (int from = 0; from < size; from++) {
            recv.copied(from, rank * c.count(), c.count(), from * c.count());
        }
    }

    private static void exchangedUnevenly(Expectation recv, Case c, int rank, int size) {
        Shares.received(c, rank, size)
                .forEach((from, count, place) ->
                        recv.copied(from, Shares.sent(c, from, size).place(rank), count, place));
    }

    private static <T extends Element> void transfer(DataTrial<T> t, boolean send, int from, int count, int peer) {
        DeviceBuffer<T> part = (send ? t.send() : t.recv()).slice(from, count);
        if (t.form().byAddress()) {
            if (send) {
                t.communicator().onAddresses().send(part.address(), count, t.dataType(), peer, t.stream());
            } else {
                t.communicator().onAddresses().recv(part.address(), count, t.dataType(), peer, t.stream());
            }
        } else if (send) {
            t.communicator().send(part, peer, t.stream());
        } else {
            t.communicator().recv(part, peer, t.stream());
        }
    }
}
