// Writes agui-1.0.0.json and agui-0.0.59.json: the validators of @ag-ui/core as JSON Schema. See README.md.
import { writeFileSync } from 'node:fs';
import { z } from 'zod/v4';
import { zodToJsonSchema } from 'zod-to-json-schema';
import * as core from 'agui-core-1.0.0/schemas';
import * as old from 'agui-core-0.0.59';

const write = (name, schema) => writeFileSync(new URL(name, import.meta.url), `${JSON.stringify(schema, null, 1)}\n`);

// What the validators check in code, which toJSONSchema leaves out.
const neverNull = ['rawEvent', 'result'];
const objects = ['responseSchema', 'custom'];

const schemaOf = (validator) => z.toJSONSchema(validator, {
  unrepresentable: 'any',
  io: 'input',
  override: ({ zodSchema, jsonSchema }) => {
    if (zodSchema === core.MetadataSchema) jsonSchema.type = 'object';
    if (jsonSchema.type !== 'object' || !jsonSchema.properties) return;
    if (!jsonSchema.specOpen) jsonSchema.additionalProperties = false;
    delete jsonSchema.specOpen;
    for (const name of neverNull) {
      if (jsonSchema.properties[name]) jsonSchema.properties[name] = { not: { type: 'null' } };
    }
    for (const name of [...objects, ...(jsonSchema.properties.activityType ? ['content'] : [])]) {
      if (jsonSchema.properties[name]) jsonSchema.properties[name] = { type: 'object' };
    }
  },
});

write('agui-1.0.0.json', {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $defs: Object.fromEntries(['Event', 'Message', 'RunAgentInput', 'AgentCapabilities'].map((name) => {
    const { $schema, ...schema } = schemaOf(core[`${name}Schema`]);
    return [name, schema];
  })),
});

const { $schema, ...event } = zodToJsonSchema(old.EventSchemas, { $refStrategy: 'none', removeAdditionalStrategy: 'strict' });
write('agui-0.0.59.json', { $schema: 'http://json-schema.org/draft-07/schema#', definitions: { Event: event } });
