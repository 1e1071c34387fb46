package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NoWindowException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.SignalWait;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.support.Checks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;

/** All operations with their buffers in symmetric windows, and the operations that need windows. */
final class WindowSuite {
    private static final String SUBJECT = "windows";
    private static final String PEERS = "addresses of peers";
    private static final String PEER_ADDRESS = "ncclGetPeerDevicePointer";
    private static final int[] BLOCKS = {1, 1000, 300_000};
    /** A number of elements for which NCCL writes into the other ranks' memory directly. */
    private static final int LARGE = 4 << 20;

    private final Checks checks = new Checks();
    private final Crew crew;
    private final List<Window> windows = new ArrayList<>();
    /** The number of windows of other ranks that loads and stores have reached; -1 if that was not checked. */
    private int reached = -1;

    WindowSuite(Crew crew) {
        this.crew = crew;
    }

    void run() {
        if (!NcclLibrary.get().provides("ncclCommWindowRegister")) {
            crew.skip(SUBJECT, "the library lacks ncclCommWindowRegister");
            return;
        }
        try {
            crew.together(() -> crew.members().forEach(member -> windows.add(member.useWindow())));
        } catch (NoWindowException e) {
            crew.skip(SUBJECT, CommandErrors.reason(e));
            return;
        }
        crew.checkWith("ncclCommWindowRegister", SUBJECT, this::areOpen);
        crew.checkWith("ncclCommWindowRegister", SUBJECT, this::connect);
        new DataSuite(crew, true).run();
        crew.checkWith("ncclPutSignal", "puts", this::puts);
        crew.checkWith("ncclSignal", "signals", this::signals);
        crew.checkWith(PEER_ADDRESS, PEERS, this::peers);
        if (reached == 0 && crew.size() > 1) {
            crew.skip(PEERS, "loads and stores reach the memory of no other rank from here");
        }
        crew.checkWith("ncclCommWindowDeregister", SUBJECT, this::close);
    }

    private void areOpen() {
        for (Window window : windows) {
            checks.isTrue(window.isOpen() && window.nativeHandle() != 0, "window");
        }
    }

    /**
     * A large collective before the first send. In the other order, NCCL before 2.29.2 takes a null address for another rank's
     * memory.
     */
    private void connect() {
        List<DeviceBuffer<Int32>> buffers = new ArrayList<>();
        crew.members().forEach(member -> buffers.add(member.take(ElementType.INT32, LARGE)));
        crew.together(() -> {
            for (int i = 0; i < buffers.size(); i++) {
                Member member = crew.members().get(i);
                member.communicator.broadcast(buffers.get(i), 0, member.stream);
            }
        });
        crew.members().forEach(Member::await);
    }

    /** Waits until all ranks have arrived. */
    private void meet() {
        List<DeviceBuffer<Int32>> numbers = new ArrayList<>();
        crew.members().forEach(member -> numbers.add(member.number(1)));
        crew.together(() -> {
            for (int i = 0; i < numbers.size(); i++) {
                Member member = crew.members().get(i);
                member.communicator.allReduce(numbers.get(i), ReduceOp.SUM, member.stream);
            }
        });
        crew.members().forEach(Member::await);
    }

    private SignalWait[] oneOfEach() {
        SignalWait[] waits = new SignalWait[crew.size()];
        Arrays.setAll(waits, rank -> SignalWait.of(rank, 1));
        return waits;
    }

    /** Each rank puts a block into the window of each rank, itself included. */
    private void puts() {
        int size = crew.size();
        for (int block : BLOCKS) {
            List<DeviceBuffer<Int32>> sources = new ArrayList<>();
            List<DeviceBuffer<Int32>> targets = new ArrayList<>();
            for (Member member : crew.members()) {
                sources.add(member.take(ElementType.INT32, block));
                targets.add(member.take(ElementType.INT32, (long) block * size));
                sources.get(sources.size() - 1).fill((long) block + member.rank());
                targets.get(targets.size() - 1).fill(-1L);
            }
            meet();
            crew.together(() -> {
                for (int i = 0; i < sources.size(); i++) {
                    Member member = crew.members().get(i);
                    long place = member.placeOf(targets.get(i)) + (long) block * member.rank();
                    for (int peer = 0; peer < size; peer++) {
                        member.communicator.putSignal(sources.get(i), windows.get(i), place, peer, member.stream);
                    }
                }
            });
            crew.together(
                    () -> crew.members().forEach(member -> member.communicator.waitSignal(member.stream, oneOfEach())));
            crew.members().forEach(Member::await);
            int[] expected = new int[block * size];
            for (int rank = 0; rank < size; rank++) {
                Arrays.fill(expected, rank * block, (rank + 1) * block, block + rank);
            }
            for (DeviceBuffer<Int32> target : targets) {
                int[] received = new int[expected.length];
                target.copyTo(received);
                checks.equal(expected, received, "the elements that a rank put");
            }
            // No rank puts into the next block before all ranks have checked.
            meet();
            crew.members().forEach(Member::reuseMemory);
        }
    }

    private void signals() {
        for (int i = 0; i < 3; i++) {
            crew.together(() -> crew.members().forEach(member -> {
                for (int peer = 0; peer < crew.size(); peer++) {
                    member.communicator.signal(peer, member.stream);
                }
            }));
        }
        SignalWait[] waits = new SignalWait[crew.size()];
        Arrays.setAll(waits, rank -> SignalWait.of(rank, 2));
        crew.together(() -> crew.members().forEach(member -> member.communicator.waitSignal(member.stream, waits)));
        crew.together(
                () -> crew.members().forEach(member -> member.communicator.waitSignal(member.stream, oneOfEach())));
        crew.members().forEach(Member::await);
        meet();
    }

    /** Each rank copies from the windows of the ranks that it reaches, and then to them. */
    private void peers() {
        int size = crew.size();
        List<DeviceBuffer<Int32>> blocks = new ArrayList<>();
        for (Member member : crew.members()) {
            DeviceBuffer<Int32> block = member.take(ElementType.INT32, BLOCKS[1]);
            block.fill(100L + member.rank());
            blocks.add(block);
        }
        meet();
        reached = 0;
        for (int i = 0; i < blocks.size(); i++) {
            Member member = crew.members().get(i);
            Window window = windows.get(i);
            int found = 0;
            for (int peer = 0; peer < size; peer++) {
                OptionalLong address = window.peerAddress(peer);
                if (address.isEmpty()) {
                    checks.isTrue(peer != member.rank(), "the address of the own window must be known");
                    continue;
                }
                found++;
                DeviceBuffer<Int32> theirs = DeviceBuffer.wrap(
                        member.device(),
                        ElementType.INT32,
                        address.getAsLong() + Integer.BYTES * member.placeOf(blocks.get(i)),
                        BLOCKS[1]);
                // The first elements are those that ranks write to.
                int[] read = new int[BLOCKS[1] - size];
                int[] expected = new int[read.length];
                Arrays.fill(expected, 100 + peer);
                theirs.slice(size, read.length).copyTo(read);
                checks.equal(expected, read, "the elements of rank " + peer);
                theirs.slice(member.rank(), 1).copyFrom(new int[] {1000 + member.rank()});
            }
            int teams = member.communicator.properties().lsaTeams().orElse(size / found);
            checks.equal(size, teams * found, "ranks of all teams");
            reached += found - 1;
        }
        meet();
        for (int i = 0; i < blocks.size(); i++) {
            int[] written = new int[size];
            blocks.get(i).slice(0, size).copyTo(written);
            for (int peer = 0; peer < size; peer++) {
                boolean isReached = windows.get(i).peerAddress(peer).isPresent();
                checks.equal(
                        isReached ? 1000 + peer : 100 + crew.members().get(i).rank(), written[peer], "written");
            }
        }
        meet();
    }

    private void close() {
        // The window needs the memory until it is closed.
        windows.forEach(Window::close);
        checks.isTrue(windows.stream().noneMatch(Window::isOpen), "closed");
        meet();
    }
}
