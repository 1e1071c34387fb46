/**
 * Programs that create and lose communicators repeatedly, and check for leaks: with JUnit on the host engine, and as
 * commands on the GPUs of a machine. Only classes named {@code *Test} need JUnit.
 */
package io.github.nccl4j.tests.endurance;
