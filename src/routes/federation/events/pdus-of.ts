import type { JsonValue, ReadJson } from '../../../core/json.ts'
import { readExactJson } from '../../../core/json.ts'
import { elementTexts } from '../../../core/json-slices.ts'
import type { EndpointRequest } from '../../../http/request.ts'

/** The events of a transaction. Each has its own offence against canonical JSON, so that one bad event does not fail the others. */
export function pdusOf(
  request: EndpointRequest<unknown, unknown, { readonly pdus: readonly JsonValue[] }>,
): ReadJson[] {
  const { pdus } = request.body
  if (request.bodyOffence === undefined) return pdus.map((value) => ({ value, offence: undefined }))
  return (elementTexts(request.bodyText, 'pdus') ?? []).map((text) => readExactJson(text))
}
