import type { LiveKind } from './live-kind.ts';

/** Maximum number of alarms in an event. */
const MAX_ALARMS = 500;

/** The present alarms: at the beginning, and in each second in which one is raised or cleared. */
export const ALARMS: LiveKind<undefined> = {
  read: () => undefined,
  open({ broker, emit, everySecond }) {
    let hasChanged = false;
    const show = () => {
      hasChanged = false;
      const present = broker.alarms.present();
      emit({ at: broker.clock.now(), count: present.length, alarms: present.slice(0, MAX_ALARMS) });
    };
    const changed = () => {
      hasChanged = true;
    };
    broker.on('alarm.raised', changed).on('alarm.cleared', changed);
    const stop = everySecond(() => {
      if (hasChanged) show();
    });
    show();
    return {
      close() {
        stop();
        broker.off('alarm.raised', changed).off('alarm.cleared', changed);
      }
    };
  }
};
