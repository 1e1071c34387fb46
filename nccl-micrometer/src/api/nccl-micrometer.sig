#Signature file v4.1
#Version 1.0

CLSS public final io.github.nccl4j.micrometer.NcclMetrics
cons public init()
intf io.micrometer.core.instrument.binder.MeterBinder
intf java.lang.AutoCloseable
meth public void bindTo(io.micrometer.core.instrument.MeterRegistry)
meth public void close()
supr java.lang.Object
hfds BYTES,CALLS,installed

CLSS abstract interface io.github.nccl4j.micrometer.package-info

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

