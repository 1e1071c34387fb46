package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Properties;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RankExitTest {

    @Test
    void describesExitCodesAndSignals() {
        assertEquals("rank 1 (pid 4711) exited with code 3", new RankExit(Role.rank(1), 4711, 3).describe());
        assertEquals(
                "rank 2 (pid 4711) was killed by signal 9 (SIGKILL)", new RankExit(Role.rank(2), 4711, 137).describe());
        assertEquals("rank 0 (pid 1) was killed by signal 11 (SIGSEGV)", new RankExit(Role.rank(0), 1, 139).describe());
        assertEquals("rank 0 (pid 1) was killed by signal 40", new RankExit(Role.rank(0), 1, 168).describe());
        assertEquals("spare 1 (pid 4711) exited with code 0", new RankExit(Role.spare(1), 4711, 0).describe());
        assertEquals("rank 0 (pid 1) exited with code 255", new RankExit(Role.rank(0), 1, 255).describe());
    }

    @Test
    void signalsAreTheCodesBehind128() {
        List<Integer> killed = IntStream.range(0, 256)
                .filter(code -> new RankExit(Role.rank(0), 1, code).isKilled())
                .boxed()
                .toList();
        assertEquals(IntStream.rangeClosed(129, 192).boxed().toList(), killed);
        for (int code = 0; code < 256; code++) {
            assertEquals(code != 0, new RankExit(Role.rank(0), 1, code).isFailure());
            assertEquals(code == 137, new RankExit(Role.rank(0), 1, code).isSigkill());
        }
    }

    @Test
    void forwardsPropertiesExceptTheChoiceOfLibrary() {
        Properties properties = new Properties();
        properties.setProperty("nccl4j.engine", "auto");
        properties.setProperty("nccl4j.library", "/lib/x.so");
        properties.setProperty("nccl4j.vccl.alltoallv", "10");
        properties.setProperty("org.bytedeco.javacpp.logger.debug", "true");
        properties.setProperty("user.name", "somebody");
        assertEquals(
                List.of("-Dnccl4j.vccl.alltoallv=10", "-Dorg.bytedeco.javacpp.logger.debug=true"),
                JavaCommand.forwardedProperties(properties));
    }
}
