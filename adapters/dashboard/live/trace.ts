import { Fault } from '../../rest/index.ts';
import type { LiveKind } from './live-kind.ts';
import { integerIn } from './params.ts';

/** Maximum number of lines in an event. */
const MAX_LINES = 200;

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
      const lines = traces.lines(id, last, MAX_LINES);
      if (lines.length === 0) return;
      last = lines[lines.length - 1].number;
      emit({ lines: lines.map(({ number, line }) => ({ number, record: JSON.parse(line) })) });
    };
    show();
    return { close: everySecond(show) };
  }
};
