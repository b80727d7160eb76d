/** Decides which node owns the session of a client id. */
export interface ClientIdClaims {
  /**
   * Claim a client id for this node, after the hooks have admitted the client and before its session starts or is resumed. If several
   * clients claim one client id, each gets the session when its claim succeeds, so the last one keeps it.
   * @returns undefined if the client id belongs to this node already: the client is admitted at once. Otherwise a promise that resolves
   * when it does; until then the connection is not read
   * @throws ProtocolError (or a promise that is rejected with one), whose reason code refuses the client. Any other error counts as
   * internal
   */
  claim(clientId: string): Promise<void> | undefined;
}

/** The claims of a single broker: every client id belongs to it. */
export const LOCAL_CLAIMS: ClientIdClaims = { claim: () => undefined };
