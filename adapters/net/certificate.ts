import type { Arrival, Gate, Stage } from './gate.ts';

/** The stage that makes the certificate's name the user name. A connection without one is closed: it could take any name it liked. */
export function usernameStage(gate: Gate, usernameFrom: 'cn' | 'subject', next: Stage): Stage {
  return (arrival: Arrival) => {
    // A pre-shared key has named and proved the user already.
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
