import { type QueueSurvey, surveyQueues } from '../../../store/appservices/appservice-survey.ts'
import { type BackupRun, listBackups } from '../../../store/backup/backup-runs.ts'
import type { Database } from '../../../store/db/db.ts'
import { wholeTables } from '../../../store/db/whole-tables.ts'
import { pageBindings } from '../../../store/identity/binding-pages.ts'
import type { AppserviceRegistry } from '../../appservices/registry.ts'
import { MAX_EVENTS_COUNTED } from '../../limits/console-pages.ts'

/** An application service, without its tokens. */
export interface BridgeView extends Partial<QueueSurvey> {
  readonly id: string
  readonly url: string | null
  readonly sender: string
  readonly is_hosted: boolean
  readonly rate_limited: boolean
  readonly protocols: readonly string[]
  readonly namespaces: Readonly<Record<string, readonly { readonly regex: string; readonly exclusive: boolean }[]>>
}

/** What runs beside the rooms: bridges, the identity service's bindings, backups. */
export interface OperationsView {
  bridges(): Promise<readonly BridgeView[]>
  bindings(wanted: {
    readonly search: string | undefined
    readonly from: number
    readonly limit: number
  }): ReturnType<typeof pageBindings>
  backups(): Promise<readonly BackupRun[]>
}

export function createOperationsView({
  db,
  appservices,
}: {
  readonly db: Database
  readonly appservices: Pick<AppserviceRegistry, 'all'>
}): OperationsView {
  return {
    async bridges() {
      const queues = new Map((await surveyQueues(db, MAX_EVENTS_COUNTED)).map((queue) => [queue.appservice_id, queue]))
      return appservices.all().map(({ id, sender, registration }) => {
        const { url, rate_limited, protocols, namespaces, hosted } = registration
        const plain = Object.entries(namespaces).map(([kind, all]) => [
          kind,
          all.map(({ regex, exclusive }) => ({ regex, exclusive })),
        ])
        return {
          id,
          url: url === null ? null : withoutPassword(url),
          sender,
          is_hosted: hosted !== undefined,
          rate_limited,
          protocols,
          namespaces: Object.fromEntries(plain) as BridgeView['namespaces'],
          ...queues.get(id),
        }
      })
    },
    bindings: (wanted) => pageBindings(wholeTables(db), wanted),
    backups: () => listBackups(db),
  }
}

/** An address may name a user and a password. */
function withoutPassword(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//')
}
