import { setup } from 'xstate';
import { type SessionActions, type SessionEvent, sessionChart } from './chart.ts';

/** `sessionChart` as a machine of xstate. */
export const sessionMachine = setup({
  types: {} as { context: { session: SessionActions }; input: { session: SessionActions }; events: SessionEvent },
  actions: {
    awaitConnect: ({ context }) => context.session.awaitConnect(),
    authenticate: ({ context }) => context.session.authenticate(),
    admit: ({ context }) => context.session.admit(),
    goLive: ({ context }) => context.session.goLive(),
    release: ({ context }) => context.session.release(),
    awaitExpiry: ({ context }) => context.session.awaitExpiry(),
    cancelExpiry: ({ context }) => context.session.cancelExpiry(),
    forget: ({ context }) => context.session.forget()
  }
}).createMachine({ ...sessionChart, context: ({ input }) => ({ session: input.session }) });
