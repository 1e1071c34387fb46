#Signature file v4.1
#Version 1.0

CLSS public abstract interface !annotation io.github.nccl4j.highlevel.Incubating
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=CLASS)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[TYPE, METHOD])
intf java.lang.annotation.Annotation

CLSS public final io.github.nccl4j.micrometer.NcclKernelMetrics
 anno 0 io.github.nccl4j.highlevel.Incubating()
cons public init()
intf io.micrometer.core.instrument.binder.MeterBinder
intf java.lang.AutoCloseable
meth public void bindTo(io.micrometer.core.instrument.MeterRegistry)
meth public void close()
supr java.lang.Object
hfds SIZES,SMALLEST,STEP,subscriptions

CLSS public final io.github.nccl4j.micrometer.NcclMetrics
cons public init()
intf io.micrometer.core.instrument.binder.MeterBinder
intf java.lang.AutoCloseable
meth public void bindTo(io.micrometer.core.instrument.MeterRegistry)
meth public void close()
supr java.lang.Object
hfds BYTES,CALLS,installed

CLSS abstract interface io.github.nccl4j.micrometer.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public abstract interface io.micrometer.core.instrument.binder.MeterBinder
meth public abstract void bindTo(io.micrometer.core.instrument.MeterRegistry)
 anno 1 io.micrometer.common.lang.NonNull()

CLSS public abstract interface java.lang.AutoCloseable
meth public abstract void close() throws java.lang.Exception

CLSS public java.lang.Object
cons public init()
meth protected java.lang.Object clone() throws java.lang.CloneNotSupportedException
meth protected void finalize() throws java.lang.Throwable
 anno 0 java.lang.Deprecated(boolean forRemoval=false, java.lang.String since="9")
meth public boolean equals(java.lang.Object)
meth public final java.lang.Class<?> getClass()
meth public final void notify()
meth public final void notifyAll()
meth public final void wait() throws java.lang.InterruptedException
meth public final void wait(long) throws java.lang.InterruptedException
meth public final void wait(long,int) throws java.lang.InterruptedException
meth public int hashCode()
meth public java.lang.String toString()

CLSS public abstract interface java.lang.annotation.Annotation
meth public abstract boolean equals(java.lang.Object)
meth public abstract int hashCode()
meth public abstract java.lang.Class<? extends java.lang.annotation.Annotation> annotationType()
meth public abstract java.lang.String toString()

CLSS public abstract interface !annotation java.lang.annotation.Documented
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[ANNOTATION_TYPE])
intf java.lang.annotation.Annotation

CLSS public abstract interface !annotation java.lang.annotation.Retention
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[ANNOTATION_TYPE])
intf java.lang.annotation.Annotation
meth public abstract java.lang.annotation.RetentionPolicy value()

CLSS public abstract interface !annotation java.lang.annotation.Target
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[ANNOTATION_TYPE])
intf java.lang.annotation.Annotation
meth public abstract java.lang.annotation.ElementType[] value()

CLSS public abstract interface !annotation org.jspecify.annotations.NullMarked
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[MODULE, PACKAGE, TYPE, METHOD, CONSTRUCTOR])
intf java.lang.annotation.Annotation

