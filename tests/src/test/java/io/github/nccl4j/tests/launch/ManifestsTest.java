package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Tests that {@link RankInfo} finds the ranks of pods from the manifests in docs. */
class ManifestsTest {
    private static final Pattern VARIABLE = Pattern.compile(
            "- name: ([A-Z0-9_]+)\\s+(?:value: \"?([^\"\\n]+)\"?|valueFrom:\\s+fieldRef:\\s+fieldPath: (\\S+))");

    /** The rank of a pod with the environment of a manifest. The fields are those that Kubernetes provides. */
    private static RankInfo pod(String manifest, int index, Map<String, String> fields) throws IOException {
        Map<String, String> environment = new HashMap<>(Map.of("JOB_COMPLETION_INDEX", "" + index));
        Matcher variables = VARIABLE.matcher(Files.readString(Path.of("../docs/kubernetes", manifest)));
        while (variables.find()) {
            String field = variables.group(3);
            assertTrue(field == null || fields.containsKey(field), field);
            environment.put(variables.group(1), field == null ? variables.group(2) : fields.get(field));
        }
        return RankInfo.from(Map.of(), environment);
    }

    @Test
    void indexedJobProvidesRanks() throws IOException {
        for (int index = 0; index < 4; index++) {
            assertEquals(
                    new RankInfo(index, 4, 0, 1, "train-0.train", 29500, "", 0, RankInfo.Source.KUBERNETES),
                    pod("indexed-job.yaml", index, Map.of()));
        }
    }

    @Test
    void jobSetProvidesRanks() throws IOException {
        for (int rank = 0; rank < 8; rank++) {
            Map<String, String> fields = Map.of(
                    "metadata.annotations['jobset.sigs.k8s.io/job-global-index']", "" + rank / 4,
                    "metadata.annotations['jobset.sigs.k8s.io/coordinator']", "train-ranks-0-0.train",
                    "metadata.annotations['jobset.sigs.k8s.io/jobset-name']", "train",
                    "metadata.labels['jobset.sigs.k8s.io/restart-attempt']", "2");
            assertEquals(
                    new RankInfo(rank, 8, 0, 1, "train-ranks-0-0.train", 29500, "train", 2, RankInfo.Source.KUBERNETES),
                    pod("jobset.yaml", rank % 4, fields));
        }
    }
}
