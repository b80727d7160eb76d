/** Parts of the management interface for the console, which has the interface below its own mount. */

export { managementService } from '../api.ts';
export { faultOf } from '../codes.ts';
export { answerTo } from '../reply.ts';
export { eventFields } from '../streams/event-fields.ts';
export { tailFields } from '../streams/tail-stream.ts';
