/**
 * Everything that {@code highlevel} does with communicators, compared with what it must give, on any engine: with JUnit on
 * the host engine, and with {@code nccl4j conformance} on whatever a machine has. Only classes named {@code *Test} need
 * JUnit.
 */
package io.github.nccl4j.tests.conformance;
