package io.github.nccl4j.samples.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RankInfoTest {

    private static Map<String, String> complete() {
        return new HashMap<>(Map.of(
                "RANK", "5",
                "WORLD_SIZE", "8",
                "LOCAL_RANK", "1",
                "LOCAL_WORLD_SIZE", "4",
                "MASTER_ADDR", "node0",
                "MASTER_PORT", "29500"));
    }

    @Test
    void readsTorchrunsVariables() {
        assertEquals(Optional.of(new RankInfo(5, 8, 1, 4, "node0", 29500)), RankInfo.from(complete()));
    }

    @Test
    void avoidsThePortOfTorchrunsStore() {
        Map<String, String> environment = complete();
        environment.put("TORCHELASTIC_USE_AGENT_STORE", "True");
        assertEquals(29501, RankInfo.from(environment).orElseThrow().masterPort());
    }

    @Test
    void noLauncherIsNoError() {
        assertEquals(Optional.empty(), RankInfo.from(Map.of("MASTER_ADDR", "node0", "MASTER_PORT", "29500")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    void aMissingVariableIsNamed(String name) {
        Map<String, String> environment = complete();
        environment.remove(name);
        IllegalArgumentException failure =
                assertThrows(IllegalArgumentException.class, () -> RankInfo.from(environment));
        assertTrue(failure.getMessage().contains("lacks " + name + " (needed"), failure.getMessage());
    }

    @ParameterizedTest
    @CsvSource({"RANK,8", "RANK,-1", "RANK,x", "WORLD_SIZE,0", "LOCAL_RANK,4", "LOCAL_WORLD_SIZE,9", "MASTER_PORT,70000"
    })
    void aValueOutOfRangeIsNamed(String name, String value) {
        Map<String, String> environment = complete();
        environment.put(name, value);
        IllegalArgumentException failure =
                assertThrows(IllegalArgumentException.class, () -> RankInfo.from(environment));
        assertTrue(failure.getMessage().startsWith(name + " in the environment must be"), failure.getMessage());
        assertTrue(failure.getMessage().endsWith(": " + value), failure.getMessage());
    }
}
