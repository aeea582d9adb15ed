// Imported before ONNX Runtime is, and where a thread is started that loads it: threads cannot change the environment that
// native code sees. Else the runtime's own client would report to its maker that, and how, it is used.
process.env.ORT_DISABLE_TELEMETRY = "1";
