package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.Group;
import java.util.List;

/** Several trials whose operations are launched together, the last of them by way of a group within the group. */
record GroupTrial(List<Trial> trials) implements Trial {
    @Override
    public void prepare() {
        trials.forEach(Trial::prepare);
    }

    @Override
    public void call() {
        try (Group outer = Group.open()) {
            trials.subList(0, trials.size() - 1).forEach(Trial::call);
            Group.run(trials.get(trials.size() - 1)::call);
            outer.launch();
        }
    }

    @Override
    public void verify() {
        for (Trial trial : trials) {
            try {
                trial.verify();
            } catch (AssertionError e) {
                throw new AssertionError(trial + ": " + e.getMessage(), e);
            }
        }
    }

    @Override
    public void close() {
        trials.forEach(Trial::close);
    }
}
