import type { Arrival, Gate, Stage } from './gate.ts';

/**
 * Create the stage that takes the user name from the client certificate. A connection without one is closed, because it could choose any
 * user name in CONNECT.
 */
export function usernameStage(gate: Gate, usernameFrom: 'cn' | 'subject', next: Stage): Stage {
  return (arrival: Arrival) => {
    // a pre-shared key has already given the user name
    if (!arrival.isAuthenticated) {
      const username = usernameFrom === 'cn' ? arrival.certificate?.commonName : arrival.certificate?.subject;
      if (username === undefined || username === '') {
        gate.refuse(arrival, 'no_username');
        return;
      }
      arrival.username = username;
    }
    next(arrival);
  };
}
