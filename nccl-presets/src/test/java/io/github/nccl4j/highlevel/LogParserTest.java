package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.highlevel.NcclLog.Level;
import io.github.nccl4j.highlevel.NcclLog.Line;
import io.github.nccl4j.internal.log.KnownCommunicators;
import io.github.nccl4j.internal.log.LogParser;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests of {@link LogParser} with lines as releases of NCCL write them. */
class LogParserTest {
    private static final long HANDLE = 0x7f3a1c000b70L;

    @AfterEach
    void end() {
        KnownCommunicators.remove(HANDLE);
        KnownCommunicators.remove(HANDLE + 1);
    }

    private static Line parse(String line) {
        return NcclLog.parse(line, 4711).orElseThrow();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "node1:4711:4720 [3] misc/socket.cc:568 NCCL WARN Net : Call to recv failed"
                        + " | WARN | 4720 | 3 | misc/socket.cc:568 | Net : Call to recv failed",
                "[2026-11-21 10:00:00] gpu-7:4711:4720 [0] misc/socket.cc:568 NCCL WARN text: with 1:2:3 [4]"
                        + " | WARN | 4720 | 0 | misc/socket.cc:568 | text: with 1:2:3 [4]",
                "[2026-11-21 10:00:00] gpu-7:4711:4720 [0] transport/net.cc:12 (connect) NCCL WARN broken"
                        + " | WARN | 4720 | 0 | transport/net.cc:12 (connect) | broken",
                "2026-11-21 10:00:00 gpu-7:4711:4720 [0] enqueue.cc:3 NCCL WARN other form of time"
                        + " | WARN | 4720 | 0 | enqueue.cc:3 | other form of time",
                "node1:4711:4711 [1] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"
                        + " | INFO | 4711 | 1 | '' | Bootstrap : Using eth0:10.0.0.1<0>",
                "10:00:00 node1:4711:4711 NCCL CALL ncclGroupStart()" + " | TRACE | 4711 | -1 | '' | ncclGroupStart()",
                "node1:4711:4711 [1] 12.345678 ncclLaunch:77 NCCL TRACE deep"
                        + " | TRACE | 4711 | 1 | ncclLaunch:77 | deep",
                "NCCL version 2.28.3+cuda13.0 | INFO | -1 | -1 | '' | NCCL version 2.28.3+cuda13.0"
            })
    void parsesPartsOfALine(String line, Level level, long thread, int device, String place, String text) {
        // A line without a device belongs to the only communicator without one, if there is exactly one; here are two.
        KnownCommunicators.add(HANDLE, new KnownCommunicators.Member(2, "train", -1));
        KnownCommunicators.add(HANDLE + 1, new KnownCommunicators.Member(3, "", -1));
        assertEquals(new Line(level, thread, device, place, text, -1, ""), parse(line));
    }

    @Test
    void skipsLinesOfAnotherProcess() {
        assertEquals(Optional.empty(), NcclLog.parse("node1:4712:4720 [3] NCCL INFO x", 4711));
    }

    @Test
    void handleInTextGivesRankAndName() {
        String line = "node1:4711:4711 [0] NCCL INFO comm 0x7f3a1c000b70 rank 5 nranks 8 - Init COMPLETE";
        assertEquals(5, parse(line.replace("b70", "c70")).rank());
        KnownCommunicators.add(HANDLE, new KnownCommunicators.Member(2, "train", -1));
        assertEquals(2, parse(line).rank());
        assertEquals("train", parse(line).communicator());
        assertEquals("", parse(line.replace("b70", "c70")).communicator());
        // The line may be read after the communicator was closed.
        KnownCommunicators.remove(HANDLE);
        assertEquals("train", parse(line).communicator());
    }

    /** A warning names no communicator; the thread's device tells, where it has one only. */
    @Test
    void unambiguousDeviceGivesRankAndName() {
        // A device on which other tests have no communicator.
        int device = 977;
        String line = "node1:4711:4711 [" + device + "] init.cc:1 NCCL WARN x";
        KnownCommunicators.add(HANDLE, new KnownCommunicators.Member(2, "train", device));
        assertEquals(
                "rank 2 of communicator 'train': x (init.cc:1)", parse(line).toString());
        KnownCommunicators.add(HANDLE + 1, new KnownCommunicators.Member(3, "", device));
        assertEquals("x (init.cc:1)", parse(line).toString());
        KnownCommunicators.remove(HANDLE);
        KnownCommunicators.remove(HANDLE + 1);
    }
}
