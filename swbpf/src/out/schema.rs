//! The published form of the output: `docs/schema.json`, `docs/all-nodes.schema.json` and `docs/list.schema.json`.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::snapshot::{Gathered, Listing, Snapshot};

/// JSON Schema (draft 2020-12) of one line of output. Every key is always there, and no other is.
pub fn json_schema() -> Schema {
    schema_of::<Snapshot>()
}

/// The same of the answer of `--once --all-nodes`.
pub fn all_nodes_schema() -> Schema {
    schema_of::<Gathered>()
}

/// The same of the answer of `list`.
pub fn list_schema() -> Schema {
    schema_of::<Listing>()
}

/// The same of any answer: `T` as it is written.
pub fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(close))
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Refuses keys that an object does not name.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}
