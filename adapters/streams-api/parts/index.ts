/** Parts of the interface of stream rules for the console, which has the interface below its own mount. */

export { streamsService } from '../api.ts';
export { shownMetrics } from '../rule-forms.ts';
