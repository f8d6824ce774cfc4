import type { JsonObject } from '../../core/json.ts'
import type { TemplateValue } from '../../core/template.ts'
import type { UiaView } from '../../domain/accounts/interactive-auth.ts'
import type { PageName, PageValue } from '../../domain/page-rules.ts'
import type { Services } from '../../domain/services.ts'
import type { EndpointRequest } from '../../http/request.ts'

/** The fields of a form, as a person filled them in. */
export type Fields = Readonly<Record<string, string | undefined>>

/** The facts about a form's sender that are needed for sending messages. */
export type Sender = Pick<EndpointRequest, 'ip' | 'isForwarded' | 'dialect' | 'acceptLanguage'>

export type FallbackPageName = Extract<PageName, `fallback-${string}`>

/** The page of a stage at one of its steps. */
export interface StagePage {
  readonly name: FallbackPageName
  /** Hidden fields of its form, beside the session. */
  readonly hidden?: Fields
  readonly values?: { readonly [value in PageValue<FallbackPageName>]?: TemplateValue | undefined }
}

/** One stage of an authentication, for people whose client does not know it. */
export interface FallbackStage {
  /** `fields` are the result of `prepare`, or the last entered fields, with the session. */
  page(services: Services, view: UiaView, fields: Fields): StagePage
  /** Processes a form that does not complete the stage yet. Gives the fields of the next form; undefined if this form is the last. */
  prepare?(fields: Fields, services: Services, view: UiaView, sender: Sender): Promise<Fields | undefined>
  /** Origins of other sites that the page loads from. */
  vendor?(services: Services): readonly string[]
  /** The `auth` object for the form, as a client would send it. */
  auth(fields: Fields, services: Services, view: UiaView): JsonObject
}
