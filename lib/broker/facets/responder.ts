// The app has every right, so a client must not be able to direct a response to a topic where it may not publish
// itself: a response goes only to topics to which the requester is subscribed. That was decided by its rights.

import { type Answers, answerTo } from '../../client/answers.ts';
import { DECIDERS } from '../../events/deciders.ts';
import type { Message } from '../../packets/message.ts';
import { TopicKind } from '../../routing/route.ts';
import { innerFilter, matches, mountedName } from '../../topics/topic.ts';
import type { Engine } from '../engine.ts';
import { newMessage } from '../new-message.ts';

/** Responds to a request to the app. The response is published when a promise that it returns has resolved. */
export type AppRequestHandler = (request: Message) => Answers;

/** Options of `broker.respond`. */
export interface AppRespondOptions {
  /** Stops responding when it aborts. */
  readonly signal?: AbortSignal;
}

/** Publishes the responses of the app. */
export class Responder {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Call the handler of a request, and publish its response. @param during names the handler, for errors */
  async respond(request: Message, handler: AppRequestHandler, during: string): Promise<void> {
    const { routing, publishing, services } = this.#engine;
    const { announcer, life, time } = services;
    const { clientId } = request;
    const response = await answerTo(request, handler, (error) => announcer.failed(error, during, undefined));
    if (response === undefined || !life.isRunning) return;
    if (clientId === '') {
      await publishing.own.publish(response);
      return;
    }
    const mountpoint = this.#engine.sessions.get(clientId)?.client.mountpoint ?? '';
    const topic = mountedName(response.topic, mountpoint) ?? response.topic;
    const route = routing.of(topic);
    if (route.kind === TopicKind.ordinary && this.#isSubscribed(clientId, topic))
      await publishing.own.publish({ ...response, topic });
    else
      announcer.dropped(
        newMessage({ topic }, undefined, time),
        'not_authorized',
        undefined,
        route,
        DECIDERS.responseTopic
      );
  }

  #isSubscribed(clientId: string, topic: string): boolean {
    for (const { filter } of this.#engine.sessions.get(clientId)?.subscriptions.values() ?? [])
      if (matches(innerFilter(filter), topic)) return true;
    return false;
  }
}
