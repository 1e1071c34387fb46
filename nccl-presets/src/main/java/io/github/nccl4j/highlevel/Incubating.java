package io.github.nccl4j.highlevel;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks a public type or method that any release may change or remove, without being deprecated before: usually the Java
 * side of something new in NCCL. A method whose signature contains an incubating type is incubating, too.
 *
 * @since 0.1
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface Incubating {}
