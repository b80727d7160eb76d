/** Parts of the management interface for the console, which has the interface below its own mount. */

export { managementService } from '../api.ts';
export { faultOf } from '../codes.ts';
export { eventFields } from '../event-fields.ts';
export { answerTo } from '../reply.ts';
