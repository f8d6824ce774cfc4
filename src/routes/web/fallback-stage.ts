import type { JsonObject } from '../../core/json.ts'
import type { UiaView } from '../../domain/accounts/interactive-auth.ts'
import type { Services } from '../../domain/services.ts'
import type { EndpointRequest } from '../../http/request.ts'

/** What a person entered: the fields of a form. */
export type Fields = Readonly<Record<string, string | undefined>>

/** Who sent a form, as far as sending messages needs to know. */
export type Sender = Pick<EndpointRequest, 'ip' | 'isForwarded' | 'dialect' | 'acceptLanguage'>

/** The page of one stage. */
export interface FallbackStage {
  readonly heading: string
  /** What stands in the form: HTML. `fields` are what `prepare` gave, or what was entered last. */
  content(services: Services, view: UiaView, fields: Fields): string
  button(fields: Fields): string
  /** What is to be done with a form before it can prove anything. Gives the fields of the next form where that is not the last one. */
  prepare?(fields: Fields, services: Services, view: UiaView, sender: Sender): Promise<Fields | undefined>
  /** What the page must load from elsewhere. */
  vendor?(services: Services): readonly string[]
  /** What the form says, as a client would send it. */
  auth(fields: Fields, services: Services, view: UiaView): JsonObject
}
