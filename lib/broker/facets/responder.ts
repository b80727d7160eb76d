// The app has every right, so a client must not be able to direct a response to a topic where it may not publish
// itself: anything that it cannot say there it could let the app say. A response goes to the topic of the client below
// `$client`, or it is decided as a message of the client; in both cases only if the client is subscribed to the topic.

import { type Answers, answerTo } from '../../client/answers.ts';
import { DECIDERS } from '../../events/deciders.ts';
import type { Message, MessageInput } from '../../packets/message.ts';
import { TopicKind } from '../../routing/route.ts';
import type { Session } from '../../session/session.ts';
import { isOwnTopic } from '../../topics/client-topics.ts';
import { checkTopicName, innerFilter, matches, mountedName } from '../../topics/topic.ts';
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
    const { announcer, life } = this.#engine.services;
    const { username } = request;
    const { number } = life;
    const send = async (response: MessageInput) => {
      if (life.isRunning && life.number === number) await this.#publish(request, username, response);
    };
    await answerTo(request, handler, send, (error) => announcer.failed(error, during, undefined));
  }

  /** @param username of the client when it sent the request */
  async #publish({ clientId, origin }: Message, username: string | undefined, response: MessageInput): Promise<void> {
    const { publishing, sessions, operated, services } = this.#engine;
    if (clientId === '') {
      await publishing.own.publish(response);
      return;
    }
    const session = sessions.get(clientId);
    const isSameUser = session?.client.username === username;
    // the topic is that of a PUBLISH of the client
    const given = operated.rewrites.apply(response.topic, 'publish');
    const topic = mountedName(given, session?.client.mountpoint ?? '');
    if (topic === undefined || session === undefined || !isSameUser || !this.#mayChoose(session, given, topic)) {
      const dropped = newMessage({ topic: topic ?? given }, origin, services.time);
      services.announcer.dropped(dropped, 'not_authorized', undefined, undefined, DECIDERS.responseTopic);
    } else if (isOwnTopic(clientId, given)) await publishing.own.publish({ ...response, topic });
    else publishing.own.respond({ ...response, topic }, session.client);
  }

  /** Tell whether a client may choose a topic for its responses. @param given the topic without the mount point */
  #mayChoose({ client, subscriptions }: Session, given: string, topic: string): boolean {
    const maxLevels = client.agreement.zone.maxTopicLevels;
    if (checkTopicName(given, { maxLevels }) !== undefined) return false;
    if (this.#engine.routing.of(topic).kind !== TopicKind.ordinary) return false;
    for (const { filter } of subscriptions.values()) if (matches(innerFilter(filter), topic)) return true;
    return false;
  }
}
