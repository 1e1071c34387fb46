package io.github.nccl4j.benchmarks;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** A benchmark method that is one way to make the same call: a row of the table. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Way {
    /**
     * The name in the table.
     *
     * @return a few words
     */
    String value();

    /**
     * The first Java release that supports the way.
     *
     * @return the feature number
     */
    int since() default 17;

    /**
     * True if the way is also measured with the option that removes the memory barrier of the return from C.
     *
     * @return true for the most important ways
     */
    boolean alsoWithoutBarrier() default false;
}
