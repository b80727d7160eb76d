import { useEffect, useRef } from 'preact/hooks';
import { getPage } from '../../app/requests.ts';
import { timeText } from '../../model/format.ts';
import { Badge } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { T } from '../../texts.ts';
import type { SessionRow } from './row.ts';

const C = T.client;

/** The ban that refuses a client. Null: there is none; undefined: it is not known. @param session undefined: only its client id is known */
export function useBan(id: string, session: SessionRow | undefined) {
  const known = useRef(session?.client);
  if (session !== undefined) known.current = session.client; // also after its session has ended
  const { username = 'undefined', ip_address = 'undefined' } = known.current ?? {};
  const given = (text: string) => (text === 'undefined' ? undefined : text);
  return useLoaded(`${id} ${username} ${ip_address}`, async (signal, isBackground) => {
    const query = { _clientid: id, _username: given(username), _peerhost: given(ip_address) };
    return (await getPage('/banned', { query, signal, isBackground })).data.at(0) ?? null;
  });
}

/** The time in which a client that was disconnected usually connects again. */
const RETURN_MS = 3_000;

/** Load again after a change, and a moment later: the client may have connected again. */
export function useChanged(load: () => void): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    load();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => latest.current(), RETURN_MS);
  };
}

/** The mark of a client that is banned. */
export function Banned({ ban }: { readonly ban: { readonly until: number | string } | null | undefined }) {
  if (!ban) return null;
  const { until } = ban;
  return <Badge kind="bad">{typeof until === 'number' ? C.bannedUntil(timeText(until * 1000)) : C.bannedAlways}</Badge>;
}
