/**
 * Programs that make and lose communicators over and over, and look at what is left: with JUnit on the host engine, and as
 * commands on whatever a machine has. Only classes named {@code *Test} need JUnit.
 */
package io.github.nccl4j.tests.endurance;
