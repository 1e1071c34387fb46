package io.github.nccl4j.tests.highlevel;

/**
 * A wrong use of the package.
 *
 * @param name a description of the misuse
 * @param ends true if the world's communicators are unusable afterwards, as the class comment of Communicator says
 * @param body prepares the misuse, and makes the wrong call within {@link MisuseWorld#refuses}
 */
record Misuse(String name, boolean ends, Body body) {

    /** What is done in a world. */
    @FunctionalInterface
    interface Body {
        void run(MisuseWorld world) throws Exception;
    }

    /** Does the wrong thing in a world of its own, and proves that nothing bad has come of it. */
    void run() throws Exception {
        try (MisuseWorld world = new MisuseWorld()) {
            body.run(world);
            world.proveRefusal();
            if (ends) {
                try (MisuseWorld next = new MisuseWorld()) {
                    next.proveUsable();
                }
            } else {
                world.proveUsable();
            }
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
