package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.library.NativeLibrary;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.junit.jupiter.api.Test;

class EngineSettingTest {

    private final Properties properties = new Properties();

    @Test
    void defaultIsAutomatic() {
        assertEquals(new EngineSetting("auto", null), EngineSetting.of(null, null, properties, Map.of()));
        assertEquals(
                new EngineSetting("auto", null),
                EngineSetting.of(null, null, properties, Map.of("NCCL4J_ENGINE", "", "NCCL4J_LIBRARY", "")));
    }

    @Test
    void optionsOverridePropertiesAndPropertiesOverrideVariables() {
        Map<String, String> environment = Map.of("NCCL4J_ENGINE", "rccl", "NCCL4J_LIBRARY", "/env.so");
        assertEquals(new EngineSetting("rccl", "/env.so"), EngineSetting.of(null, null, properties, environment));
        properties.setProperty("nccl4j.engine", "nccl");
        properties.setProperty("nccl4j.library", "/property.so");
        assertEquals(new EngineSetting("nccl", "/property.so"), EngineSetting.of(null, null, properties, environment));
        assertEquals(
                new EngineSetting("nccl", "/option.so"), EngineSetting.of(null, "/option.so", properties, environment));
        assertEquals(new EngineSetting("host", null), EngineSetting.of("host", null, properties, environment));
    }

    @Test
    void rejectsUnknownEngine() {
        assertEquals(
                "no such engine: 'cuda' (nccl, rccl, host or auto)",
                assertThrows(IllegalArgumentException.class, () -> EngineSetting.of("cuda", null, properties, Map.of()))
                        .getMessage());
    }

    @Test
    void decideKeepsAnExplicitSetting() {
        EngineSetting automatic = new EngineSetting("auto", null);
        EngineSetting host = new EngineSetting("host", null);
        EngineSetting library = new EngineSetting("auto", "/libnccl.so");
        assertTrue(automatic.isAutomatic() && !automatic.isHost());
        assertTrue(!host.isAutomatic() && host.isHost());
        assertTrue(!library.isAutomatic() && !library.isHost());
        assertFalse(new EngineSetting("host", "/libnccl.so").isHost());
        for (EngineSetting named : List.of(host, library)) {
            assertEquals(new EngineSetting.Decision(named, Optional.empty()), named.decide(4));
        }
    }

    /** NCCL if each rank has a GPU, else the host engine and a line about it. */
    @Test
    void decidesByTheNumberOfGpus() {
        String given = System.setProperty("nccl4j.engine", "AUTO");
        try {
            int gpus = EngineSetting.gpus();
            assertEquals("nccl", System.getProperty("nccl4j.engine"), "else the class would choose with a warning");
            assertEquals(NativeLibrary.gpuCount(), gpus);
            System.setProperty("nccl4j.engine", "auto");
            EngineSetting.Decision tooFew = new EngineSetting("auto", null).decide(gpus + 1);
            assertEquals("nccl", System.getProperty("nccl4j.engine"), "else the class would choose with a warning");
            assertEquals(new EngineSetting("host", null), tooFew.setting());
            String warning = tooFew.warning().orElseThrow();
            assertTrue(warning.startsWith("warning: "), warning);
            assertTrue(warning.endsWith(": running on the host engine (host memory, no GPU)"), warning);
            System.setProperty("nccl4j.engine", "rccl");
            EngineSetting.gpus();
            assertEquals("rccl", System.getProperty("nccl4j.engine"), "a choice stays");
        } finally {
            if (given == null) {
                System.clearProperty("nccl4j.engine");
            } else {
                System.setProperty("nccl4j.engine", given);
            }
        }
    }

    /** A rank gets both variables, so that it does not inherit one from the launcher. */
    @Test
    void environmentSetsBothVariables() {
        assertEquals(
                Map.of("NCCL4J_ENGINE", "host", "NCCL4J_LIBRARY", ""), new EngineSetting("host", null).environment());
        assertEquals(
                Map.of("NCCL4J_ENGINE", "auto", "NCCL4J_LIBRARY", "/libnccl.so"),
                new EngineSetting("auto", "/libnccl.so").environment());
    }
}
