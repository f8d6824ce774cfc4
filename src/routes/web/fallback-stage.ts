import type { JsonObject } from '../../core/json.ts'
import type { TemplateValue } from '../../core/template.ts'
import type { UiaView } from '../../domain/accounts/interactive-auth.ts'
import type { PageName, PageValue } from '../../domain/page-rules.ts'
import type { Services } from '../../domain/services.ts'
import type { EndpointRequest } from '../../http/request.ts'

/** What a person entered: the fields of a form. */
export type Fields = Readonly<Record<string, string | undefined>>

/** Who sent a form, as far as sending messages needs to know. */
export type Sender = Pick<EndpointRequest, 'ip' | 'isForwarded' | 'dialect' | 'acceptLanguage'>

export type FallbackPageName = Extract<PageName, `fallback-${string}`>

/** The page of a stage at one of its steps. */
export interface StagePage {
  readonly name: FallbackPageName
  /** What its form carries along, besides the session. */
  readonly hidden?: Fields
  readonly values?: { readonly [value in PageValue<FallbackPageName>]?: TemplateValue | undefined }
}

/** One stage of an authentication, for people whose client does not know it. */
export interface FallbackStage {
  /** `fields` are what `prepare` gave, or what was entered last, and the session. */
  page(services: Services, view: UiaView, fields: Fields): StagePage
  /** What is to be done with a form before it can prove anything. Gives the fields of the next form where that is not the last one. */
  prepare?(fields: Fields, services: Services, view: UiaView, sender: Sender): Promise<Fields | undefined>
  /** What the page must load from elsewhere. */
  vendor?(services: Services): readonly string[]
  /** What the form says, as a client would send it. */
  auth(fields: Fields, services: Services, view: UiaView): JsonObject
}
