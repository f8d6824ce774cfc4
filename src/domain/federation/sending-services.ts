import { createPeers, type Peers } from '../../outbound/peers.ts'
import { type AskProfile, createRemoteProfiles } from '../accounts/remote-profiles.ts'
import type { HomeserverBase } from '../base.ts'
import type { RemoteToDevice } from '../e2e/to-device.ts'
import type { RemoteDeviceLists } from '../keys/device-lists.ts'
import type { RemoteKeys } from '../keys/remote-keys.ts'
import type { FederationQueries } from '../rooms/receive/federation-queries.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import type { PresenceOf } from '../sync/presence.ts'
import type { Tracing } from '../tracing.ts'
import { createFederationQueries } from './ask-peers.ts'
import { createDeviceListNews } from './device-list-news.ts'
import type { NewNeighbours } from './new-neighbours.ts'
import { createOutgoing, type Outgoing } from './outgoing.ts'
import { createPresenceNews } from './presence-news.ts'
import { createRemoteKeys } from './remote-keys.ts'
import { createSentMessages } from './sent-messages.ts'

/** Sends requests, events and EDUs to other servers. */
export interface SendingServices {
  readonly peers: Peers
  readonly outgoing: Outgoing
  /** Sends changes of our users' device lists. */
  readonly deviceListNews: RemoteDeviceLists
  /** Sends a local user's presence. */
  presenceNews(userNid: number, is: PresenceOf): Promise<void>
  /** Sends to-device messages. */
  readonly sentMessages: RemoteToDevice
  /** Asks them for events and states of rooms. */
  readonly queries: FederationQueries
  /** Asks them for keys of their users. */
  readonly remoteKeys: RemoteKeys
  /** Requests their users' profiles. */
  readonly askProfile: AskProfile
}

export function createSendingServices(parts: {
  readonly base: Pick<
    HomeserverBase,
    'config' | 'db' | 'users' | 'clock' | 'random' | 'log' | 'metrics' | 'tracing' | 'policy' | 'outbound'
  >
  readonly roomBase: Pick<RoomBase, 'registry' | 'events' | 'userRooms' | 'erasedUsers' | 'lifetimes' | 'sticky'>
}): SendingServices {
  const { config, db, users, clock, random, log, metrics, tracing, policy, outbound } = parts.base
  const { registry, events, userRooms, erasedUsers, lifetimes, sticky } = parts.roomBase
  const serverName = config.server_name
  const peers = createPeers(outbound.federation)
  const { sendTransaction } = peers
  const outgoing = createOutgoing({
    db,
    serverName,
    policy,
    peers: { sendTransaction: tracing ? traced(sendTransaction, tracing) : sendTransaction },
    registry,
    events,
    erasedUsers,
    lifetimes,
    sticky,
    clock,
    random,
    log,
    metrics: metrics.federation,
  })
  return {
    peers,
    outgoing,
    deviceListNews: createDeviceListNews({ serverName, db, clock, users, registry, outgoing }),
    presenceNews: createPresenceNews({ db, clock, registry, userRooms, edu: outgoing.edu }),
    sentMessages: createSentMessages({ clock, random, outgoing }),
    queries: createFederationQueries({ peers, log }),
    remoteKeys: createRemoteKeys({ peers }),
    askProfile: createRemoteProfiles({ peers, clock }),
  }
}

/** Sends each transaction as a span. The name of the other server is not in it. */
function traced(send: Peers['sendTransaction'], tracing: Tracing): Peers['sendTransaction'] {
  return (...transaction) => tracing.run('federation send', {}, () => send(...transaction))
}

/** Continues with what the previous process left to send. @param position the newest committed one */
export async function startSending(
  { outgoing }: Pick<SendingServices, 'outgoing'>,
  newNeighbours: NewNeighbours,
  position: number,
): Promise<void> {
  const handedOn = await outgoing.start(position)
  if (handedOn !== undefined) await newNeighbours.takeUp(handedOn)
}
