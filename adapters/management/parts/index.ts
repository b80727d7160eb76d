/** Parts of the management interface for the console, which has the interface below its own mount. */

export { managementService } from '../api.ts';
export { faultOf } from '../codes.ts';
export { answerTo } from '../reply.ts';
export { eventFields } from '../streams/event-fields.ts';
export { QueuedEvents } from '../streams/queued-events.ts';
export { STREAM_HEADERS } from '../streams/server-sent-events.ts';
export { plainProperties } from '../streams/tail-stream.ts';
