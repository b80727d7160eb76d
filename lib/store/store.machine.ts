import { setup } from 'xstate';
import { once } from '../base/builtins.ts';
import type { StoreActions, StoreEvent } from './chart.ts';

/**
 * The lifecycle of a store: closed, open, or failed, which means that a commit has failed and none has succeeded since.
 *
 * One or two events belong to a commit, none to a change. A commit, a fold and a pulse that are due are fields of the ledger.
 */
export const storeMachine = once(() =>
  setup({
    types: {} as { context: { store: StoreActions }; input: { store: StoreActions }; events: StoreEvent },
    actions: {
      accept: ({ context }) => context.store.accept(),
      write: ({ context }) => context.store.write(),
      end: ({ context }) => context.store.end(),
      notify: ({ context }) => context.store.notify(),
      notifyPart: ({ context }) => context.store.notifyPart(),
      rest: ({ context }) => context.store.rest(),
      keepJournals: ({ context }) => context.store.keepJournals(),
      refuse: ({ context }) => context.store.refuse(),
      raise: ({ context }) => context.store.raise(),
      reject: ({ context }) => context.store.reject(),
      shrink: ({ context }) => context.store.shrink(),
      reopen: ({ context }) => context.store.reopen(),
      recover: ({ context }) => context.store.recover(),
      shut: ({ context }) => context.store.shut()
    }
  }).createMachine({
    id: 'store',
    context: ({ input }) => ({ store: input.store }),
    initial: 'closed',
    states: {
      closed: { on: { open: 'opening' } },
      opening: { on: { opened: { target: 'open', actions: 'accept' }, refused: 'closed' } },
      open: {
        initial: 'resting',
        states: {
          resting: { on: { commit: 'writing', close: '#store.closing' } },
          writing: {
            entry: 'write',
            exit: 'end',
            on: {
              committed: { target: 'resting', actions: ['notify', 'rest'] },
              foldRefused: { target: 'writing', reenter: true, actions: 'keepJournals' },
              failed: { target: '#store.failed', actions: ['refuse', 'raise', 'reject'] }
            }
          }
        }
      },
      failed: {
        initial: 'waiting',
        states: {
          waiting: { entry: 'reopen', on: { reopened: 'trying', close: '#store.closing' } },
          trying: {
            entry: 'write',
            exit: 'end',
            on: {
              committed: { target: '#store.open', actions: ['recover', 'notify', 'rest'] },
              partCommitted: { target: 'trying', reenter: true, actions: 'notifyPart' },
              failed: { target: 'waiting', actions: ['shrink', 'refuse', 'reject'] }
            }
          }
        }
      },
      closing: { entry: 'shut', on: { closed: 'closed' } }
    }
  })
);
