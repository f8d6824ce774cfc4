import type { Areas } from './areas.ts'
import type { Context } from './base.ts'
import { startAppservices } from './domain/appservices/appservice-services.ts'
import { startSending } from './domain/federation/sending-services.ts'
import { type LifecyclePart, startAll, stopAll } from './domain/lifecycle.ts'
import { createSyncDesk, type SyncDesk } from './domain/standby/sync-desk.ts'
import { createPlanAhead } from './domain/sync/first/plan-ahead.ts'
import { endpointServices } from './endpoint-services.ts'
import { identityWorkers } from './identity-role.ts'
import { levelsOf } from './levels.ts'
import { createSlidingReader } from './routes/client/sync/sliding-bodies.ts'
import { homeserverWorkers } from './workers/homeserver-workers.ts'

/** Starts what runs beside the requests. */
export async function startAreas(plansAhead: boolean, areas: Areas): Promise<Context> {
  const { metrics, tracing, log, ready } = areas.base
  const running = runningParts(areas, plansAhead)
  await startAll(running)
  metrics.watch(levelsOf(areas))
  return {
    services: endpointServices(areas),
    syncDesk: syncDeskOf(areas),
    metrics,
    tracing,
    log,
    ready,
    listening: areas.sending.outgoing.open,
    drain: areas.syncBase.notifier.drain,
    lost: areas.base.node.lost,
    isHeld: areas.base.node.isHeld,
    close: () => stopAll(running, log),
  }
}

function syncDeskOf({ base, accounts, rooms, roomBase, syncBase }: Areas): SyncDesk | undefined {
  if (base.config.cluster.secret === undefined) return undefined
  const { sync, sliding, now } = rooms.syncing
  const { userRooms } = roomBase
  return createSyncDesk({
    sessions: accounts.sessions,
    filters: accounts.filters,
    sync,
    slidingSync: sliding.slidingSync,
    readSliding: createSlidingReader(sliding.slidingRequests),
    userRooms,
    notifier: syncBase.notifier,
    now,
  })
}

/** What runs beside the requests, in the order in which it is started. It is stopped backwards. */
function runningParts(areas: Areas, plansAhead: boolean): readonly LifecyclePart[] {
  const { base, rooms, accounts, addresses, appserviceBase, appservices, eventsOut, media } = areas
  const { sending, newNeighbours } = areas
  const { db, node, outbound, messenger } = base
  const ownHomeserver = { serverName: base.config.server_name, bound: rooms.acting.thirdPartyInvites.bound }
  return [
    { name: 'the database', stop: db.close },
    // Given back last: the next node begins at once.
    { name: 'its place among the nodes', stop: node.leave },
    { name: 'passwords', stop: accounts.passwords.close },
    { name: 'sessions', stop: base.sessions.close },
    // Listed before the client that it calls with, so it stops after it: closing the client ends the calls in flight.
    { name: 'events to application services', stop: eventsOut.close },
    { name: 'calls to others', stop: outbound.close },
    { name: 'media', stop: media.close },
    { name: 'messages to people', stop: () => messenger.close() },
    {
      name: 'events to other servers',
      start: () => startSending(sending, newNeighbours, rooms.position()),
      stop: sending.outgoing.close,
    },
    ...rooms.running,
    {
      name: 'application services',
      start: () => startAppservices({ base, appserviceBase, eventsOut, appservices, rooms, accounts }),
    },
    ...homeserverWorkers(areas),
    ...identityWorkers(base, addresses.identity, ownHomeserver),
    ...(plansAhead ? [createPlanAhead({ db, serverName: base.config.server_name })] : []),
  ]
}
