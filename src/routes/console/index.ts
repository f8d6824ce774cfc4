import type { Endpoint } from '../../http/endpoint.ts'
import { endConsoleSession } from './data/end-console-session.ts'
import { getConfiguration } from './data/get-configuration.ts'
import { getOverview } from './data/get-overview.ts'
import { getOverviewHistory } from './data/get-overview-history.ts'
import { getRoomGraph } from './data/get-room-graph.ts'
import { listBackups } from './data/list-backups.ts'
import { listBindings } from './data/list-bindings.ts'
import { listBridges } from './data/list-bridges.ts'
import { listRoomPage } from './data/list-room-page.ts'
import { listRoomPageMembers } from './data/list-room-page-members.ts'
import { listRoomPageState } from './data/list-room-page-state.ts'
import { proveConsoleSession } from './data/prove-console-session.ts'
import { getConsoleFile } from './get-console-file.ts'
import { showConsolePage } from './show-console-page.ts'

/** The page and its files, for browsers. */
export const consolePageEndpoints: readonly Endpoint[] = [showConsolePage, getConsoleFile]

/** What the page asks for beside the paths of existing tools. */
export const consoleDataEndpoints: readonly Endpoint[] = [
  getOverview,
  getOverviewHistory,
  listRoomPage,
  listRoomPageMembers,
  listRoomPageState,
  getRoomGraph,
  listBridges,
  listBindings,
  listBackups,
  getConfiguration,
  proveConsoleSession,
  endConsoleSession,
]
