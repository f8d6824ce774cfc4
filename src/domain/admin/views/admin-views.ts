import type { AppserviceRegistry } from '../../appservices/registry.ts'
import type { Base } from '../../base.ts'
import { type ConsoleFiles, openConsoleFiles } from '../../console-files.ts'
import type { RoomRegistry } from '../../rooms/room/registry.ts'
import type { Statistics } from '../statistics.ts'
import { createOperationsView, type OperationsView } from './operations.ts'
import { createOverview, type Overview } from './overview.ts'
import { createOverviewHistory, type OverviewHistory } from './overview-history.ts'
import { createRoomGraph, type RoomGraph } from './room-graph.ts'
import { createRoomPages, type RoomPages } from './room-pages.ts'

/** What the console shows and no interface of other tools gives. */
export interface AdminViews {
  readonly files: ConsoleFiles
  readonly overview: Overview
  readonly history: OverviewHistory
  readonly roomPages: RoomPages
  readonly graph: RoomGraph
  readonly operations: OperationsView
}

export function createAdminViews(parts: {
  readonly base: Pick<Base, 'db' | 'clock' | 'metrics'>
  readonly registry: RoomRegistry
  readonly appservices: AppserviceRegistry
  readonly statistics: Statistics
}): AdminViews {
  const { db, clock, metrics } = parts.base
  const { registry, statistics, appservices } = parts
  const since = clock.now()
  return {
    files: openConsoleFiles(),
    overview: createOverview({ db, clock, metrics, statistics, since }),
    history: createOverviewHistory({ clock, metrics, since }),
    roomPages: createRoomPages({ db, registry }),
    graph: createRoomGraph({ db, registry }),
    operations: createOperationsView({ db, appservices }),
  }
}
