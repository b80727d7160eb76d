import { Fault } from '../../rest/index.ts';
import type { LiveKind } from './live-kind.ts';
import { integerIn } from './params.ts';

/** Maximum number of lines in an event. */
const MAX_LINES = 200;
/** Lines are sent together up to this size, in characters. The others follow in the next second. */
const EVENT_LENGTH = 262_144;

/** The lines of a trace as they come, beginning with those that are kept. */
export const TRACE: LiveKind<number> = {
  read: (params) => integerIn(params, 'id'),
  open({ broker, hidesPayloads, emit, everySecond }, id) {
    if (hidesPayloads)
      throw new Fault('notPermitted', 'viewers may not see payloads of messages here (option viewerPayloads)');
    const { traces } = broker.monitor;
    if (traces.lineCount(id) === undefined)
      throw new Fault('unknownRecord', `there is no trace ${id} whose lines are kept`);
    let last = 0;
    const show = () => {
      const lines: object[] = [];
      let length = 0;
      for (const { number, line } of traces.lines(id, last, MAX_LINES)) {
        if (length >= EVENT_LENGTH) break;
        length += line.length;
        last = number;
        lines.push({ number, record: JSON.parse(line) });
      }
      if (lines.length > 0) emit({ lines });
    };
    show();
    return { close: everySecond(show) };
  }
};
